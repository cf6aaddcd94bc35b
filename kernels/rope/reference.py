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


def rope_and_store(
    qkv: Tensor,  # [T, H + 2 * KVH, D]
    positions: Tensor,  # [T]
    inv_freq: Tensor,  # [D / 2]
    k_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    v_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    slot_mapping: Tensor,  # [T]
) -> Tensor:
    """Turn q and k, store k and v at their slots, and give q; [T, H, D]."""
    kv_heads = k_cache.shape[2]
    turned = apply_rope(qkv[:, :-kv_heads], positions, inv_freq)
    for cache, rows in ((k_cache, turned[:, -kv_heads:]), (v_cache, qkv[:, -kv_heads:])):
        cache.view(-1, *cache.shape[2:])[slot_mapping.long()] = rows
    return turned[:, :-kv_heads]
