"""Store, copy and gather equal their definitions and touch nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from plait.kernels import kv
from plait.kernels.kv import reference

SHAPE = (2, 8)  # KV heads, head size


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


def caches(block_size: int, num_slots: int) -> tuple[Tensor, Tensor]:
    shape = (-(-num_slots // block_size) + 2, block_size, *SHAPE)
    return torch.full(shape, torch.nan), torch.full(shape, torch.nan)


def some_slots(cache: Tensor, count: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randperm(cache.shape[0] * cache.shape[1], generator=rng)[:count]


@pytest.mark.parametrize("block_size", [1, 16, 32, 64])
@pytest.mark.parametrize("count", [1, 63, 500])
def test_store_writes_the_slots_and_no_other(count: int, block_size: int) -> None:
    k_cache, v_cache = caches(block_size, count)
    wanted_k, wanted_v = k_cache.clone(), v_cache.clone()
    slots = some_slots(k_cache, count)
    k, v = torch.randn(2, count, *SHAPE)
    kv.store(k, v, k_cache, v_cache, slots)
    reference.store(k, v, wanted_k, wanted_v, slots)
    assert torch.equal(k_cache.nan_to_num(9.0), wanted_k.nan_to_num(9.0))
    assert torch.equal(v_cache.nan_to_num(9.0), wanted_v.nan_to_num(9.0))
    assert int(k_cache.isnan().all(-1).all(-1).sum()) == k_cache.shape[0] * block_size - count


def test_store_takes_views_of_a_larger_tensor() -> None:
    k_cache, v_cache = caches(16, 5)
    qkv = torch.randn(5, 6, 8)
    kv.store(qkv[:, 2:4], qkv[:, 4:], k_cache, v_cache, torch.arange(5))
    assert torch.equal(k_cache.view(-1, *SHAPE)[:5], qkv[:, 2:4])
    assert torch.equal(v_cache.view(-1, *SHAPE)[:5], qkv[:, 4:])


@pytest.mark.parametrize("block_size", [1, 16, 32, 64])
@pytest.mark.parametrize("count", [1, 63, 500])
def test_gather_reads_what_store_wrote(count: int, block_size: int) -> None:
    k_cache, v_cache = caches(block_size, count)
    slots = some_slots(k_cache, count)
    k, v = torch.randn(2, count, *SHAPE)
    kv.store(k, v, k_cache, v_cache, slots)
    assert torch.equal(kv.gather(v_cache, slots), v)
    assert torch.equal(kv.gather(v_cache, slots), reference.gather(v_cache, slots))


@pytest.mark.parametrize("block_size", [1, 16])
def test_copy_reads_everything_before_it_writes(block_size: int) -> None:
    k_cache, v_cache = (torch.randn_like(cache) for cache in caches(block_size, 63))
    wanted_k, wanted_v = k_cache.clone(), v_cache.clone()
    slots = some_slots(k_cache, 40)
    to = slots.roll(1)  # a cycle: each slot is read and written
    kv.copy(k_cache, v_cache, slots, to)
    reference.copy(wanted_k, wanted_v, slots, to)
    assert torch.equal(k_cache, wanted_k)
    assert torch.equal(v_cache, wanted_v)
