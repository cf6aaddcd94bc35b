"""Token bitmasks applied to logits. Where a device has its own kernel is decided here."""

from __future__ import annotations

from torch import Tensor

from .. import device
from . import reference

__all__ = ["apply_bitmask"]


def apply_bitmask(logits: Tensor, bitmask: Tensor, rows: Tensor) -> None:
    """Set the refused tokens of row `rows[i]` of `logits` to -inf, in place.

    `logits` is float32 [n, width]; `bitmask` int32 [m, ceil(width / 32)], where bit t % 32 of word
    t // 32 allows token t; `rows` int64 [m], distinct. All three are on one device.
    """
    if device.uses_triton(logits):
        from . import triton

        triton.apply_bitmask(logits, bitmask, rows)
    else:
        reference.apply_bitmask(logits, bitmask, rows)
