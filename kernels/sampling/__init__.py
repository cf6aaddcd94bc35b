"""Draw tokens from logits, and score them: by the compiled kernels, where there are any.

Logits here are arrays of numpy, in the memory of the CPU; `gpu` draws from those on a device.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..native import load_library
from . import native, reference
from .rows import DEAD_END, NOT_FINITE, POINTS, DrawRow, Floats, Words

__all__ = ["DEAD_END", "NOT_FINITE", "POINTS", "DrawRow", "Floats", "Words", "draw", "logprobs"]


def draw(logits: Floats, rows: Sequence[DrawRow]) -> list[int]:
    """Draw a token of each row of `logits` [r, width]; DEAD_END or NOT_FINITE where none can be."""
    library = load_library()
    if library is None:
        return reference.draw(logits, rows)
    return native.draw(library, logits, rows)


def logprobs(logits: Floats, token_ids: Sequence[Sequence[int]]) -> list[list[float]]:
    """Give log P of each of token_ids[i] under row i of `logits` [r, width]; NaN where not finite.

    What else is asked of a row changes no number.
    """
    library = load_library()
    if library is None:
        return reference.logprobs(logits, token_ids)
    return native.logprobs(library, logits, token_ids)
