"""The rules that the radix tree must keep."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from plait.runtime.cache.blocks import BlockPool
from plait.runtime.cache.node import common_len
from plait.runtime.cache.radix import RadixCache
from plait.runtime.errors import InvariantError
from plait.runtime.sequence import Int32


def ids(*values: int) -> Int32:
    return np.array(values, np.int32)


@dataclass
class Rig:
    """A pool and a tree."""

    num_blocks: int = 64
    block_size: int = 4
    pool: BlockPool = field(init=False)
    cache: RadixCache = field(init=False)

    def __post_init__(self) -> None:
        self.pool = BlockPool(self.num_blocks)
        self.cache = RadixCache(self.pool, self.block_size)

    def put(self, *tokens: int, space: str = "") -> None:
        """Insert as a finished sequence would."""
        blocks = self.pool.allocate(-(-len(tokens) // self.block_size))
        self.cache.insert(space, ids(*tokens), blocks)
        self.pool.decref(blocks)

    def num_matched(self, *tokens: int, space: str = "") -> int:
        match = self.cache.match_prefix(space, ids(*tokens))
        return match.num_tokens + (match.partial.num_tokens if match.partial else 0)


def test_a_match_ends_anywhere_in_a_block() -> None:
    rig = Rig()
    rig.put(*range(10))
    match = rig.cache.match_prefix("", ids(0, 1, 2, 3, 4, 5, 99))
    assert (match.num_tokens, len(match.blocks)) == (4, 1)
    assert match.partial is not None
    assert match.partial.num_tokens == 2
    rig.cache.check()


def test_the_last_partial_block_is_found_again() -> None:
    rig = Rig()
    rig.put(*range(10))
    assert rig.num_matched(*range(20)) == 10


def test_namespaces_share_nothing() -> None:
    rig = Rig()
    rig.put(1, 2, 3, 4, 5, space="a")
    assert rig.num_matched(1, 2, 3, 4, 5, space="b") == 0


def test_peek_sees_what_match_finds_and_changes_nothing() -> None:
    rig = Rig()
    rig.put(*range(12))
    before = [(node.stamp, len(node.tokens)) for node in rig.cache.check()]
    assert rig.cache.peek("", ids(0, 1, 2, 3, 4, 5, 9)) == 6
    assert rig.cache.peek("other", ids(0, 1)) == 0
    assert [(node.stamp, len(node.tokens)) for node in rig.cache.check()] == before


def test_the_best_of_many_siblings_is_found() -> None:
    rig = Rig(num_blocks=2000)
    for i in range(1600):
        rig.put(7, i % 40, i // 40, 5)
    assert rig.num_matched(7, 13, 22, 6, 6) == 3
    rig.cache.check()


def test_least_recently_used_leaves_go_first_and_suffixes_before_prefixes() -> None:
    rig = Rig()
    rig.put(*range(8))
    rig.put(0, 1, 2, 3, 50, 51, 52, 53)
    rig.put(90, 91, 92, 93)
    rig.num_matched(*range(8))
    assert rig.cache.evict(1) == 1
    assert rig.num_matched(0, 1, 2, 3, 50) == 4
    assert rig.cache.evict(1) == 1
    assert rig.num_matched(90, 91) == 0
    assert rig.cache.evict(1) == 1
    assert rig.num_matched(*range(8)) == 4
    rig.cache.check()


def test_eviction_takes_no_more_of_a_leaf_than_it_needs() -> None:
    rig = Rig()
    rig.put(*range(40))
    assert rig.cache.evict(3) == 3
    assert rig.num_matched(*range(40)) == 28


def test_locked_prefixes_stay() -> None:
    rig = Rig()
    rig.put(*range(8))
    rig.put(*range(4), 60, 61, 62, 63)
    node = rig.cache.match_prefix("", ids(*range(4))).node
    rig.cache.lock(node)
    assert rig.cache.num_evictable == 2
    assert rig.cache.evict(99) == 2
    assert rig.num_matched(*range(8)) == 4
    rig.cache.unlock(node)
    assert rig.cache.evict(99) == 1
    assert rig.pool.num_free == rig.num_blocks


def test_a_split_passes_its_locks_on() -> None:
    rig = Rig()
    rig.put(*range(8))
    lower = rig.cache.match_prefix("", ids(*range(8))).node
    rig.cache.lock(lower)
    upper = rig.cache.match_prefix("", ids(*range(5))).node
    assert upper is not lower
    assert upper.lock_count == 1
    rig.cache.unlock(lower)
    assert rig.cache.num_locked == 0
    rig.cache.check()


def test_a_tail_grows_in_its_own_block() -> None:
    rig = Rig()
    block = rig.pool.allocate(1)
    tail = rig.cache.insert("", ids(1, 2), block).node
    rig.cache.lock(tail)
    grown = rig.cache.insert("", ids(1, 2, 3, 4), block).node
    assert grown is tail
    assert not grown.is_tail
    assert rig.cache.num_blocks == rig.cache.num_locked == 1
    rig.cache.check()


def test_a_duplicate_stays_with_its_owner() -> None:
    rig = Rig()
    rig.put(1, 2, 3, 4)
    duplicate = rig.pool.allocate(1)
    there = rig.cache.insert("", ids(1, 2, 3, 4), duplicate).blocks
    assert there.tolist() != duplicate.tolist()
    rig.pool.decref(duplicate)
    assert rig.pool.num_free == rig.num_blocks - 1
    rig.cache.check()


def test_planned_nodes_vanish_with_their_step() -> None:
    rig = Rig()
    rig.put(1, 2, 3, 4)
    blocks = rig.pool.allocate(3)
    tokens = ids(1, 2, 3, 4, 5, 6, 7, 8, 9)
    rig.cache.insert("", tokens, blocks, is_written=False)
    rig.num_matched(1, 2, 3, 4, 5, 6)
    rig.pool.decref(blocks)
    rig.cache.drop_planned()
    assert rig.num_matched(*tokens.tolist()) == 4
    assert rig.pool.num_free == rig.num_blocks - 1
    rig.cache.check()


def test_compact_joins_a_chain_and_keeps_its_lower_handle() -> None:
    rig = Rig()
    for end in range(4, 41, 4):
        rig.put(*range(end))
    node = rig.cache.match_prefix("", ids(*range(40))).node
    rig.cache.lock(node)
    rig.cache.compact(node)
    assert len(rig.cache.check()) == 1
    assert rig.num_matched(*range(40)) == 40
    rig.cache.unlock(node)
    assert rig.cache.evict(99) == 10


def test_compact_never_swallows_a_handle() -> None:
    rig = Rig()
    rig.put(*range(4))
    upper = rig.cache.match_prefix("", ids(*range(4))).node
    rig.cache.lock(upper)
    rig.put(*range(8))
    rig.cache.compact(rig.cache.match_prefix("", ids(*range(8))).node)
    assert not upper.is_dead
    rig.cache.unlock(upper)
    rig.cache.check()


def test_reset_gives_every_block_back() -> None:
    rig = Rig()
    rig.put(*range(30))
    rig.put(*range(7), 40)
    rig.cache.reset()
    assert rig.pool.num_free == rig.num_blocks
    rig.cache.check()


def test_a_match_of_32k_tokens_compares_once_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long it takes is measured by benchmarks/radix_match.py."""
    rig = Rig(num_blocks=2048, block_size=16)
    tokens = np.random.default_rng(0).integers(0, 1000, 32768).astype(np.int32)
    rig.put(*tokens.tolist())
    rig.cache.match_prefix("", tokens[:16384])
    compared: list[int] = []

    def counted(a: Int32, b: Int32) -> int:
        compared.append(len(a))
        return common_len(a, b)

    monkeypatch.setattr("plait.runtime.cache.radix.common_len", counted)
    assert rig.cache.match_prefix("", tokens).num_tokens == 32768
    assert compared == [16384, 16384]


def test_a_tail_whose_owner_went_past_it_is_dropped() -> None:
    rig = Rig()
    block = rig.pool.allocate(1)
    tail = rig.cache.insert("", ids(1, 2), block).node
    rig.cache.lock(tail)
    rig.put(1, 2, 3, 4)
    rig.cache.move_lock(tail, rig.cache.insert("", ids(1, 2, 3, 4), block).node)
    assert tail.is_dead
    assert rig.cache.num_evictable == 0
    rig.cache.check()


def test_a_locked_leaf_cannot_be_removed() -> None:
    rig = Rig()
    rig.put(1, 2, 3, 4)
    rig.cache.lock(rig.cache.match_prefix("", ids(1, 2, 3, 4)).node)
    with pytest.raises(InvariantError, match="locked"):
        rig.cache.reset()
