"""The definition of the rotary position embedding, in the halves form of Hugging Face."""

from __future__ import annotations

import torch
from torch import Tensor


def apply_rope(x: Tensor, positions: Tensor, inv_freq: Tensor) -> Tensor:
    """Turn pairs (i, i + D/2) of each head of `x` [T, H, D] by positions * inv_freq[i].

    `inv_freq` is [D / 2].
    """
    angles = positions[:, None].float() * inv_freq[None].float()  # [T, D / 2]
    cos, sin = angles.cos().to(x.dtype)[:, None], angles.sin().to(x.dtype)[:, None]
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
