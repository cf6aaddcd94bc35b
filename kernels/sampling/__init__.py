"""Draw tokens on the device of the logits. GPUs have their own kernel."""

from __future__ import annotations

from torch import Tensor

from .. import device
from . import reference
from .reference import SamplingRows

__all__ = ["SamplingRows", "draw"]


def draw(logits: Tensor, rows: SamplingRows) -> Tensor:
    """Draw a token of each row of `logits` [r, width] fp32; int64 [r], -1 where none may come."""
    if device.uses_triton(logits):
        from . import triton

        return triton.draw(logits, rows)
    return reference.draw(logits, rows)
