"""How rows of logits are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]
Words: TypeAlias = npt.NDArray[np.int32]

POINTS: Final = 2**53
# In place of a token: none may come; the logits are not finite.
DEAD_END: Final = -1
NOT_FINITE: Final = -2


@dataclass(frozen=True, slots=True)
class DrawRow:
    """How one row is drawn. Bit t % 32 of word t // 32 stands for token t.

    Ids past the end of `mask` may not come.
    """

    known: Words  # [ceil(width / 32)] the tokens that there are
    mask: Words | None = None  # the tokens that may come, None for all
    temperature: float = 0.0  # from 1e-5 to 1e30, or 0, which takes the largest
    top_k: int = 0  # 0 keeps every token
    top_p: float = 1.0  # 1 keeps every token
    min_p: float = 0.0  # 0 keeps every token
    point: int = 0  # under POINTS

    def allowed(self) -> Words:
        """Give the tokens that may come."""
        if self.mask is None:
            return self.known
        words = np.zeros_like(self.known)
        num = min(len(words), len(self.mask))
        words[:num] = self.known[:num] & self.mask[:num]
        return words
