"""The cache's operations by Triton, one slot a program. Needs the package `triton`.

Slots are whole numbers of any width; addresses are computed in 64 bits.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


def store(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slot_mapping: Tensor) -> None:
    """Write row i of `k` and `v` [T, KVH, D] at slot `slot_mapping[i]`; the slots are distinct.

    `k` and `v` may be parts of a wider tensor.
    """
    size = _row_size(k_cache)
    assert k_cache.is_contiguous()
    assert v_cache.is_contiguous()
    assert k.stride(1) == v.stride(1) == k.shape[2]
    assert k.stride(2) == v.stride(2) == slot_mapping.stride(0) == 1
    if len(slot_mapping):
        block = triton.next_power_of_2(size)
        _store[(len(slot_mapping),)](
            k, v, k_cache, v_cache, slot_mapping, k.stride(0), v.stride(0), SIZE=size, BLOCK=block
        )


def copy(k_cache: Tensor, v_cache: Tensor, copy_from: Tensor, copy_to: Tensor) -> None:
    """Copy slot to slot, in both caches; every read comes before the first write."""
    k, v = gather(k_cache, copy_from), gather(v_cache, copy_from)
    store(k, v, k_cache, v_cache, copy_to)


def gather(cache: Tensor, slots: Tensor) -> Tensor:
    """Read slots; [n, KVH, D]."""
    assert cache.is_contiguous()
    out = torch.empty(len(slots), *cache.shape[2:], dtype=cache.dtype, device=cache.device)
    size = _row_size(cache)
    if len(slots):
        _gather[(len(slots),)](cache, slots, out, SIZE=size, BLOCK=triton.next_power_of_2(size))
    return out


def _row_size(cache: Tensor) -> int:
    return cache.shape[2] * cache.shape[3]


@triton.jit  # type: ignore[untyped-decorator]
def _store(
    k: torch.Tensor,
    v: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    k_stride: int,
    v_stride: int,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Write one token's K and V."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    is_inside = columns < SIZE
    at = tl.load(slot_mapping + row).to(tl.int64) * SIZE + columns
    tl.store(k_cache + at, tl.load(k + row * k_stride + columns, mask=is_inside), mask=is_inside)
    tl.store(v_cache + at, tl.load(v + row * v_stride + columns, mask=is_inside), mask=is_inside)


@triton.jit  # type: ignore[untyped-decorator]
def _gather(
    cache: torch.Tensor,
    slots: torch.Tensor,
    out: torch.Tensor,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Read one slot."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    is_inside = columns < SIZE
    slot = tl.load(slots + row).to(tl.int64)
    value = tl.load(cache + slot * SIZE + columns, mask=is_inside)
    tl.store(out + row * SIZE + columns, value, mask=is_inside)
