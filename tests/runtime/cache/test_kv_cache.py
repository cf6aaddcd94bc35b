"""The pool has the sizes asked for, one K and one V a layer."""

from __future__ import annotations

import pytest
import torch

from plait.runtime.cache.kv import KVCache, KVShape
from plait.runtime.errors import ModelLoadError

CPU = torch.device("cpu")


def test_layers_are_views_of_one_pool() -> None:
    cache = KVCache(KVShape(3, 5, 16, 2, 8), torch.float32, CPU)
    cache.pool.zero_()
    cache.layers[1][1][4, 15] = 7.0
    assert cache.pool[1, 1, 4, 15].eq(7.0).all()
    assert cache.pool.sum() == 7.0 * 2 * 8
    assert cache.pool.numel() == cache.shape.num_values


def test_a_pool_over_the_memory_is_refused_with_its_size() -> None:
    with pytest.raises(ModelLoadError, match=r"tokens \(.* GB\).*kv_cache_tokens"):
        KVCache(KVShape(30, 2**40, 16, 3, 64), torch.float32, CPU)
