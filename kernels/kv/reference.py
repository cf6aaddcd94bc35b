"""The definition of the cache's operations, one slot after the other.

Slot s is place s % block_size of block s // block_size.
"""

from __future__ import annotations

import torch
from torch import Tensor


def store(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slot_mapping: Tensor) -> None:
    """Write row i of `k` and `v` [T, KVH, D] at slot `slot_mapping[i]`."""
    block_size = k_cache.shape[1]
    for row, slot in enumerate(slot_mapping.tolist()):
        k_cache[slot // block_size, slot % block_size] = k[row]
        v_cache[slot // block_size, slot % block_size] = v[row]


def copy(k_cache: Tensor, v_cache: Tensor, copy_from: Tensor, copy_to: Tensor) -> None:
    """Copy slot to slot, in both caches; every read comes before the first write."""
    k, v = gather(k_cache, copy_from), gather(v_cache, copy_from)
    store(k, v, k_cache, v_cache, copy_to)


def gather(cache: Tensor, slots: Tensor) -> Tensor:
    """Read slots; [n, KVH, D]."""
    block_size = cache.shape[1]
    out = torch.empty(len(slots), *cache.shape[2:], dtype=cache.dtype, device=cache.device)
    for row, slot in enumerate(slots.tolist()):
        out[row] = cache[slot // block_size, slot % block_size]
    return out
