"""The largest number of each row. Where a device has its own kernel is decided here."""

from __future__ import annotations

from torch import Tensor

from ..native import load_library
from . import native, reference

__all__ = ["argmax"]


def argmax(logits: Tensor) -> tuple[list[float], list[int]]:
    """Give the largest number of each row of fp32 `logits` [n, width >= 1], and where it stands.

    A NaN counts as the largest; of equal numbers the first is taken.
    """
    library = load_library() if native.is_supported(logits) else None
    if library is None:
        return reference.argmax(logits)
    return native.argmax(library, logits)
