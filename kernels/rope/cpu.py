"""Rotary embedding in three operations, with sines and cosines found once a batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosines and signed sines of a batch's positions, each [T, 1, D]."""

    cos: Tensor
    sin: Tensor  # the first half is negative


def rotation(positions: Tensor, inv_freq: Tensor, dtype: torch.dtype) -> Rotation:
    """Compute the rotation of `positions` [T]; angles in fp32, the result in `dtype`."""
    angles = positions[:, None].float() * inv_freq[None].float()  # [T, D / 2]
    cos, sin = angles.cos(), angles.sin()
    return Rotation(
        torch.cat((cos, cos), dim=-1)[:, None].to(dtype),
        torch.cat((-sin, sin), dim=-1)[:, None].to(dtype),
    )


def apply_rope(x: Tensor, turn: Rotation) -> Tensor:
    """Turn each head of `x` [T, H, D]."""
    return torch.addcmul(x * turn.cos, x.roll(x.shape[-1] // 2, dims=-1), turn.sin)
