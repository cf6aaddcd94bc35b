"""Token bitmasks applied to logits. Where a device has its own kernel is decided here."""

from __future__ import annotations

from importlib.util import find_spec

from torch import Tensor

from . import cpu, reference

__all__ = ["apply_bitmask"]


def apply_bitmask(logits: Tensor, bitmask: Tensor, rows: Tensor) -> None:
    """Set the refused tokens of row `rows[i]` of `logits` to -inf, in place.

    `logits` is float32 [n, width]; `bitmask` int32 [m, ceil(width / 32)], where bit t % 32 of word
    t // 32 allows token t; `rows` int64 [m], distinct. All three are on one device.
    """
    if logits.device.type == "cpu":
        cpu.apply_bitmask(logits, bitmask, rows)
    elif logits.device.type == "cuda" and find_spec("triton") is not None:
        from . import triton  # slow to import, and absent from torch's builds for CPUs

        triton.apply_bitmask(logits, bitmask, rows)
    else:
        reference.apply_bitmask(logits, bitmask, rows)
