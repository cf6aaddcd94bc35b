"""The radix tree against a dictionary of prefixes, over random lives of sequences."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from plait.runtime.cache.blocks import BlockPool
from plait.runtime.cache.match import Match
from plait.runtime.cache.node import Node
from plait.runtime.cache.radix import RadixCache
from plait.runtime.sequence import Int32


def ids(*values: int) -> Int32:
    return np.array(values, np.int32)


@dataclass
class Rig:
    """A pool, a tree, and what each block holds."""

    num_blocks: int = 64
    block_size: int = 4
    pool: BlockPool = field(init=False)
    cache: RadixCache = field(init=False)
    held: dict[tuple[int, int], int] = field(default_factory=dict)  # (block, offset) -> token

    def __post_init__(self) -> None:
        self.pool = BlockPool(self.num_blocks)
        self.cache = RadixCache(self.pool, self.block_size)


@dataclass(eq=False)
class Owner:
    """What a sequence would hold."""

    space: str
    tokens: tuple[int, ...]
    blocks: Int32
    node: Node


prompts = st.lists(st.integers(0, 1), min_size=1, max_size=26).map(tuple)
spaces = st.sampled_from(["a", "b"])


class AgainstPrefixes(RuleBasedStateMachine):
    """Owners come, share, grow and go; the naive model is the set of all cached prefixes."""

    @initialize(block_size=st.sampled_from([1, 2, 4, 16]), num_blocks=st.integers(12, 60))
    def start(self, block_size: int, num_blocks: int) -> None:
        self.rig = Rig(num_blocks, block_size)
        self.prefixes: set[tuple[str, tuple[int, ...]]] = set()
        self.owners: list[Owner] = []

    @rule(space=spaces, wanted=st.lists(prompts, min_size=1, max_size=4), fails=st.booleans())
    def step(self, space: str, wanted: list[tuple[int, ...]], fails: bool) -> None:
        """Followers of one step share what its leaders will write; then it works, or fails."""
        before = set(self.prefixes)
        new = [owner for tokens in wanted if (owner := self.admit(space, tokens))]
        if not fails:
            self.rig.cache.commit()
            self.owners += new
            return
        for owner in new:
            self.rig.cache.unlock(owner.node)
            self.rig.pool.decref(owner.blocks)
        self.rig.cache.drop_planned()
        self.forget_lost()
        assert self.prefixes <= before

    @rule(which=st.integers(0, 99), added=prompts)
    def grow(self, which: int, added: tuple[int, ...]) -> None:
        if not self.owners:
            return
        owner, rig = self.owners[which % len(self.owners)], self.rig
        size, start = rig.block_size, len(owner.tokens)
        missing = -(-(start + len(added)) // size) - len(owner.blocks)
        if missing > rig.pool.num_free + rig.cache.num_evictable:
            return
        self.make_room(missing)
        owner.blocks = np.concatenate([owner.blocks, rig.pool.allocate(missing)])
        owner.tokens += added
        self.write(owner.tokens, owner.blocks, start)
        node = rig.cache.insert(owner.space, ids(*owner.tokens), owner.blocks).node
        rig.cache.move_lock(owner.node, node)
        owner.node = node
        self.note(owner)

    @rule(which=st.integers(0, 99))
    def leave(self, which: int) -> None:
        if self.owners:
            owner = self.owners.pop(which % len(self.owners))
            self.rig.cache.unlock(owner.node)
            self.rig.cache.compact(owner.node)
            self.rig.pool.decref(owner.blocks)

    @rule(num_blocks=st.integers(1, 8))
    def evict(self, num_blocks: int) -> None:
        evictable, free = self.rig.cache.num_evictable, self.rig.pool.num_free
        freed = self.rig.cache.evict(num_blocks)
        assert freed == min(num_blocks, evictable)
        assert self.rig.pool.num_free == free + freed
        self.forget_lost()

    @rule(space=spaces, tokens=prompts)
    def look(self, space: str, tokens: tuple[int, ...]) -> None:
        self.checked_match(space, tokens)

    @invariant()
    def is_sound(self) -> None:
        if hasattr(self, "rig"):
            self.rig.cache.check()
            self.rig.pool.check()
            for owner in self.owners:
                self.keeps(owner)

    def admit(self, space: str, tokens: tuple[int, ...]) -> Owner | None:
        rig, size = self.rig, self.rig.block_size
        match = self.checked_match(space, tokens)
        source = match.node if match.partial is None else match.partial.node
        missing = -(-len(tokens) // size) - len(match.blocks)
        spare = rig.pool.num_free + rig.cache.num_evictable
        if missing > spare - source.num_newly_locked():
            return None
        rig.cache.lock(source)
        self.make_room(missing)
        blocks = np.concatenate([match.blocks, rig.pool.allocate(missing)])
        rig.pool.incref(match.blocks)
        self.write(tokens, blocks, match.num_tokens)
        node = rig.cache.insert(space, ids(*tokens), blocks, is_written=False).node
        rig.cache.lock(node)
        rig.cache.unlock(source)
        owner = Owner(space, tokens, blocks, node)
        self.note(owner)
        return owner

    def make_room(self, num_blocks: int) -> None:
        wanted = num_blocks - self.rig.pool.num_free
        if wanted > 0:
            assert self.rig.cache.evict(wanted) == wanted
            self.forget_lost()

    def write(self, tokens: tuple[int, ...], blocks: Int32, start: int) -> None:
        size = self.rig.block_size
        for i in range(start, len(tokens)):
            self.rig.held[int(blocks[i // size]), i % size] = tokens[i]

    def note(self, owner: Owner) -> None:
        ends = range(1, len(owner.tokens) + 1)
        self.prefixes |= {(owner.space, owner.tokens[:end]) for end in ends}

    def checked_match(self, space: str, tokens: tuple[int, ...]) -> Match:
        """Match, and compare with the longest known prefix and with what the blocks hold."""
        match = self.rig.cache.match_prefix(space, ids(*tokens))
        ends = [i for i in range(1, len(tokens) + 1) if (space, tokens[:i]) in self.prefixes]
        partial = match.partial
        num_found = match.num_tokens + (0 if partial is None else partial.num_tokens)
        assert num_found == max(ends, default=0) == self.rig.cache.peek(space, ids(*tokens))
        blocks = match.blocks.tolist() + ([] if partial is None else [partial.block])
        size = self.rig.block_size
        read = tuple(self.rig.held[blocks[i // size], i % size] for i in range(num_found))
        assert read == tokens[:num_found]
        return match

    def keeps(self, owner: Owner) -> None:
        """The blocks of an owner hold its tokens, whatever others did."""
        size = self.rig.block_size
        read = [
            self.rig.held[int(owner.blocks[i // size]), i % size] for i in range(len(owner.tokens))
        ]
        assert tuple(read) == owner.tokens

    def forget_lost(self) -> None:
        """Drop from the model what eviction may drop: nothing that an owner has locked."""
        peek = self.rig.cache.peek
        self.prefixes = {(s, t) for s, t in self.prefixes if peek(s, ids(*t)) == len(t)}
        for owner in self.owners:
            num_whole = len(owner.tokens) // self.rig.block_size * self.rig.block_size
            assert peek(owner.space, ids(*owner.tokens)) >= num_whole


TestAgainstPrefixes = pytest.mark.slow(AgainstPrefixes.TestCase)
TestAgainstPrefixes.settings = settings(
    max_examples=80, stateful_step_count=40, derandomize=True, deadline=None
)
