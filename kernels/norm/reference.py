"""The definition of the root mean square norm."""

from __future__ import annotations

import torch
from torch import Tensor


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Divide `x` [..., D] by its root mean square over D, in fp32, and scale by `weight`.

    `weight` is [D], or anything that broadcasts against `x`.
    """
    wide = x.float()
    normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return normed.to(x.dtype) * weight


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Add `x` [T, D] to `residual` in place, and give the norm of the sum."""
    residual.add_(x)
    return rms_norm(residual, weight, eps)
