"""What a linear layer is made of."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Linear:
    """A weight [out, in] and its bias [out]; a packed weight is of use to its kernel alone."""

    weight: Tensor
    bias: Tensor | None
    is_packed: bool
