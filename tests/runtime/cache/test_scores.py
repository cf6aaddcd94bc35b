"""Scores in the radix tree, against a plain dict of whole texts."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.cache.blocks import BlockPool
from plait.runtime.cache.radix import RadixCache
from plait.runtime.sequence import Int32

BLOCK = 2


def ids(values: list[int]) -> Int32:
    return np.array(values, np.int32)


class Tree:
    """A radix tree that holds texts, and a dict of what was said of them."""

    def __init__(self, num_blocks: int = 400) -> None:
        self.pool = BlockPool(num_blocks)
        self.cache = RadixCache(self.pool, BLOCK)
        self.said: dict[tuple[int, ...], dict[int, float]] = {}

    def insert(self, values: list[int]) -> None:
        needed = -(-len(values) // BLOCK)
        self.cache.evict(needed - self.pool.num_free)
        blocks = self.pool.allocate(needed)
        self.cache.insert("", ids(values), blocks)
        self.pool.decref(blocks)

    def put(self, values: list[int], number: float) -> None:
        """Say something after each beginning of a text."""
        rows = {length: {3: number + length} for length in range(1, len(values) + 1)}
        self.cache.scores.put("", ids(values), rows)
        for length, logprobs in rows.items():
            self.said[tuple(values[:length])] = logprobs
        self.cache.check()

    def check(self, values: list[int]) -> dict[int, float]:
        """Give what is found of a text, all of which was said last."""
        lengths = list(range(1, len(values) + 1))
        found = self.cache.scores.find("", ids(values), lengths)
        for length, logprobs in found.items():
            assert logprobs == self.said[tuple(values[:length])]
        return {length: logprobs[3] for length, logprobs in found.items()}


TEXT = st.lists(st.integers(0, 2), min_size=1, max_size=14)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["insert", "put", "evict"]), TEXT), max_size=30))
def test_what_is_found_is_what_was_said_last(steps: list[tuple[str, list[int]]]) -> None:
    tree = Tree()
    for number, (step, values) in enumerate(steps):
        if step == "insert":
            tree.insert(values)
        elif step == "put":
            tree.put(values, number * 100.0)
        else:
            tree.cache.evict(len(values) // 2)
        tree.cache.check()
        for other in {tuple(v) for _, v in steps}:
            tree.check(list(other))


def test_all_is_found_whose_whole_blocks_the_tree_holds() -> None:
    tree = Tree()
    tree.insert([0, 1, 2, 0, 1])
    tree.put([0, 1, 2, 0, 1, 1, 2], 0.0)
    # The blocks end behind 2 and 4 tokens; what follows, less than a block, may be anything.
    assert set(tree.check([0, 1, 2, 0, 1, 1, 2])) == {1, 2, 3, 4, 5}
    assert set(tree.check([0, 1, 2, 0, 2])) == {1, 2, 3, 4}


def test_a_node_that_a_text_leaves_in_the_middle_leads_nowhere() -> None:
    tree = Tree()
    tree.insert([0, 0, 0, 0, 1, 1])
    tree.insert([0, 0, 0, 0, 1, 1, 2, 2])
    tree.put([0, 0, 0, 0, 1, 1, 2, 2], 0.0)
    # It shares one block with a node of three, whose child begins as it goes on.
    assert set(tree.check([0, 0, 2, 2])) == {1, 2}


def test_numbers_stay_where_a_node_is_split_and_joined_again() -> None:
    tree = Tree()
    long = [0, 1, 2, 0, 1, 2, 0, 1]
    tree.insert(long)
    tree.put(long, 5.0)
    before = tree.check(long)
    node = tree.cache.match_prefix("", ids([0, 1, 2, 0])).node  # splits
    assert tree.check(long) == before
    assert node.scores
    (lower,) = node.children.values()
    tree.cache.compact(lower)
    assert len(lower.tokens) == 8
    assert tree.check(long) == before


def test_they_go_with_their_node_and_all_at_a_reset() -> None:
    tree = Tree()
    tree.insert([0, 1, 2, 0, 1, 2])
    tree.put([0, 1, 2, 0, 1, 2], 1.0)
    assert tree.cache.scores.num_scores == 6
    tree.cache.evict(1)
    # Behind the last block stood one number; those before stand one block higher.
    assert tree.cache.scores.num_scores == 5
    tree.cache.reset()
    assert tree.cache.scores.num_scores == 0


def test_at_the_limit_all_are_forgotten_and_new_ones_kept() -> None:
    tree = Tree(num_blocks=2)
    limit = 4 * 2 * BLOCK
    tree.insert([0, 1])
    for token in range(limit + 3):
        tree.cache.scores.put("", ids([0, 1]), {2: {token: 1.0}})
        assert tree.cache.scores.num_scores == token % limit + 1
    tree.cache.scores.put("", ids([0, 1]), {2: dict.fromkeys(range(limit + 1), 1.0)})
    assert tree.cache.scores.num_scores == 3  # more than there is room for: not kept
