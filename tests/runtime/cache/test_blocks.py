"""The block pool counts references, and notices a wrong one."""

from __future__ import annotations

import pytest

from plait.runtime.cache.blocks import BlockPool
from plait.runtime.errors import InvariantError


def test_a_double_free_is_noticed() -> None:
    pool = BlockPool(4)
    blocks = pool.allocate(2)
    pool.decref(blocks)
    with pytest.raises(InvariantError, match="double free"):
        pool.decref(blocks)
    with pytest.raises(InvariantError, match="free block"):
        pool.incref(blocks)
    with pytest.raises(InvariantError, match="4 blocks free"):
        pool.allocate(5)
    pool.check()
