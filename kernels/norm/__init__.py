"""Root mean square norm, alone and with a residual added. GPUs have their own kernel."""

from __future__ import annotations

from torch import Tensor

from .. import device
from . import cpu

__all__ = ["add_rms_norm", "rms_norm"]


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Divide `x` [..., D] by its root mean square over D, and scale by `weight`.

    `weight` is [D], or anything that broadcasts against `x`; on a GPU [D] or [H, D] for an
    `x` of [T, H, D].
    """
    if device.uses_triton(x):
        from . import triton

        return triton.rms_norm(x, weight, eps)
    return cpu.rms_norm(x, weight, eps)


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Add `x` [T, D] to `residual` in place, and give the norm of the sum."""
    if device.uses_triton(x):
        from . import triton

        return triton.add_rms_norm(x, residual, weight, eps)
    residual.add_(x)
    return cpu.rms_norm(residual, weight, eps)
