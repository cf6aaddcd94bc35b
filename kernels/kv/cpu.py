"""The cache's operations by torch's indexed copies."""

from __future__ import annotations

from torch import Tensor


def store(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slot_mapping: Tensor) -> None:
    """Write row i of `k` and `v` [T, KVH, D] at slot `slot_mapping[i]`."""
    _slots(k_cache).index_copy_(0, slot_mapping, k)
    _slots(v_cache).index_copy_(0, slot_mapping, v)


def copy(k_cache: Tensor, v_cache: Tensor, copy_from: Tensor, copy_to: Tensor) -> None:
    """Copy slot to slot, in both caches; every read comes before the first write."""
    for cache in (k_cache, v_cache):
        _slots(cache).index_copy_(0, copy_to, gather(cache, copy_from))


def gather(cache: Tensor, slots: Tensor) -> Tensor:
    """Read slots; [n, KVH, D]."""
    return _slots(cache).index_select(0, slots)


def _slots(cache: Tensor) -> Tensor:
    return cache.view(-1, *cache.shape[2:])  # [num_slots, KVH, D]
