"""One check of a kernel against its definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# Relative RMS errors: sums of a thousand fp32 products, and two roundings to 8 bits.
BOUNDS = {torch.float32: 2e-6, torch.bfloat16: 1e-2}


@dataclass(frozen=True, slots=True)
class Case:
    """`error` runs a kernel on a device and gives its relative RMS error against `bound`."""

    name: str
    error: Callable[[torch.device], float]
    bound: float


def relative_rms(found: Tensor, wanted: Tensor) -> float:
    """Measure the error; NaN if a single number is."""
    found, wanted = found.double().cpu(), wanted.double().cpu()
    assert found.shape == wanted.shape
    size = wanted.pow(2).mean().sqrt()
    return float((found - wanted).pow(2).mean().sqrt() / (size if size > 0 else 1.0))


def exact(found: Tensor, wanted: Tensor) -> float:
    """Give 0 if both are the same, NaNs in the same places too, else 1."""
    return float(not torch.equal(found.cpu().nan_to_num(7e7), wanted.cpu().nan_to_num(7e7)))


def bound_of(dtype: torch.dtype) -> float:
    """Give the error that numbers of `dtype` may have."""
    return BOUNDS[dtype]


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Give normal numbers, the same on every machine."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator).to(dtype)
