"""The largest numbers of rows equal their definition."""

from __future__ import annotations

import math

import pytest
import torch

from plait.kernels.argmax import native
from plait.kernels.argmax.reference import argmax as reference
from plait.kernels.native import Library


def equal(library: Library, logits: torch.Tensor) -> bool:
    peaks, ids = native.argmax(library, logits)
    wanted_peaks, wanted_ids = reference(logits)
    pairs = zip(peaks, wanted_peaks, strict=True)
    return ids == wanted_ids and all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in pairs)


@pytest.mark.parametrize("width", [1, 15, 16, 17, 500, 49152])
@pytest.mark.parametrize("num_rows", [1, 5])
def test_largest_numbers_are_as_defined(library: Library, width: int, num_rows: int) -> None:
    rng = torch.Generator().manual_seed(width)
    logits = torch.randn(num_rows, width + 3, generator=rng)[:, :width]
    assert equal(library, logits)
    assert equal(library, logits.round())  # many are equal


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 3, 30, 39])
def test_what_is_not_finite_is_found(library: Library, poison: float, place: int) -> None:
    logits = torch.randn(3, 40, generator=torch.Generator().manual_seed(0))
    logits[1, place] = poison
    logits[2, 20:] = poison
    assert equal(library, logits)
    assert equal(library, torch.full((1, 33), poison))
