"""The definition of argmax, in torch."""

from __future__ import annotations

from torch import Tensor


def argmax(logits: Tensor) -> tuple[list[float], list[int]]:
    """Give the largest number of each row of `logits` [n, width >= 1], and where it stands."""
    peaks, ids = logits.max(dim=1)  # NaN wins, ties go to the lowest id
    return peaks.tolist(), ids.tolist()
