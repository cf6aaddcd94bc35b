"""Keys and values in their paged cache: store, copy, gather. GPUs have their own kernels."""

from __future__ import annotations

from torch import Tensor

from .. import device
from . import cpu

__all__ = ["copy", "gather", "store"]


def store(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slot_mapping: Tensor) -> None:
    """Write row i of `k` and `v` [T, KVH, D] at slot `slot_mapping[i]`."""
    if device.uses_triton(k_cache):
        from . import triton

        triton.store(k, v, k_cache, v_cache, slot_mapping)
    else:
        cpu.store(k, v, k_cache, v_cache, slot_mapping)


def copy(k_cache: Tensor, v_cache: Tensor, copy_from: Tensor, copy_to: Tensor) -> None:
    """Copy slot to slot, in both caches; every read comes before the first write."""
    if device.uses_triton(k_cache):
        from . import triton

        triton.copy(k_cache, v_cache, copy_from, copy_to)
    else:
        cpu.copy(k_cache, v_cache, copy_from, copy_to)


def gather(cache: Tensor, slots: Tensor) -> Tensor:
    """Read slots; [n, KVH, D]."""
    if device.uses_triton(cache):
        from . import triton

        return triton.gather(cache, slots)
    return cpu.gather(cache, slots)
