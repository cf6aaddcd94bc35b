"""Rotary position embedding, alone and fused with the store of K and V.

`rotation` and `apply_rope` are for CPUs; on a GPU `rope_and_store` does all of it at once.
"""

from __future__ import annotations

from torch import Tensor

from .. import device
from . import reference
from .cpu import Rotation, apply_rope, rotation

__all__ = ["Rotation", "apply_rope", "rope_and_store", "rotation"]


def rope_and_store(
    qkv: Tensor,  # [T, H + 2 * KVH, D]
    positions: Tensor,  # [T]
    inv_freq: Tensor,  # [D / 2]
    k_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    v_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    slot_mapping: Tensor,  # [T]
) -> Tensor:
    """Turn q and k, store k and v at their slots, and give q; [T, H, D]."""
    if device.uses_triton(qkv):
        from . import triton

        return triton.rope_and_store(qkv, positions, inv_freq, k_cache, v_cache, slot_mapping)
    return reference.rope_and_store(qkv, positions, inv_freq, k_cache, v_cache, slot_mapping)
