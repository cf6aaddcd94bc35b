"""How long the radix cache takes to find a prefix of 32,768 tokens, and what it depends on.

Trees, over blocks of 16 tokens: one span; a chat of 64 turns, each cached when it ended; a
prompt that 1,000 others share half of; and blocks of one token. No model is loaded. Shapes
alternate within each round, so a machine that slows down slows all of them.
Goal: the median match of the one span, which is what a warm long prompt costs, in 100 µs.

Run it: python -m benchmarks.radix_match [--rounds 200] [--check]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass

import numpy as np

from plait.runtime.cache.blocks import BlockPool
from plait.runtime.cache.radix import RadixCache
from plait.runtime.sequence import Int32

NUM_TOKENS = 32768
BLOCK_SIZE = 16
NUM_TURNS = 64
NUM_SIBLINGS = 1000
GOAL_US = 100.0


@dataclass(frozen=True, slots=True)
class Tree:
    """A cache that holds `tokens`."""

    name: str
    cache: RadixCache
    tokens: Int32

    def seconds(self) -> float:
        """Match once."""
        start = time.perf_counter()
        match = self.cache.match_prefix("", self.tokens)
        elapsed = time.perf_counter() - start
        assert match.num_tokens == len(self.tokens)
        return elapsed


def make_tree(name: str, block_size: int, cached: list[Int32]) -> Tree:
    """Cache prompts one after the other; the last is the one to be found."""
    pool = BlockPool(sum(-(-len(tokens) // block_size) for tokens in cached))
    cache = RadixCache(pool, block_size)
    for tokens in cached:
        blocks = pool.allocate(-(-len(tokens) // block_size))
        cache.insert("", tokens, blocks)
        pool.decref(blocks)
    return Tree(name, cache, cached[-1])


def make_trees() -> list[Tree]:
    """Make one tree of each shape."""
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 50_000, NUM_TOKENS).astype(np.int32)
    ends = range(NUM_TOKENS // NUM_TURNS, NUM_TOKENS + 1, NUM_TOKENS // NUM_TURNS)
    tails = rng.integers(0, 50_000, (NUM_SIBLINGS, BLOCK_SIZE)).astype(np.int32)
    half = whole[: NUM_TOKENS // 2]
    siblings = [np.concatenate([half, tail]) for tail in tails]
    return [
        make_tree("one span", BLOCK_SIZE, [whole]),
        make_tree(f"{NUM_TURNS} turns", BLOCK_SIZE, [whole[:end] for end in ends]),
        make_tree(f"{NUM_SIBLINGS} siblings", BLOCK_SIZE, [*siblings, whole]),
        make_tree("blocks of 1", 1, [whole]),
    ]


def main() -> int:
    """Print the table and its summary; give the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--check", action="store_true", help="exit 1 if the goal is missed")
    args = parser.parse_args()
    trees = make_trees()
    found: dict[str, list[float]] = {tree.name: [] for tree in trees}
    for _ in range(args.rounds):
        for tree in trees:
            found[tree.name].append(tree.seconds() * 1e6)
    print("tree           median us    best us")
    for name, times in found.items():
        print(f"{name:14} {statistics.median(times):9.1f} {min(times):10.1f}")
    median = statistics.median(found[trees[0].name])
    print(f"radix_match: {NUM_TOKENS} tokens in {median:.1f} us (goal {GOAL_US:.0f} us)")
    return int(args.check and median > GOAL_US)


if __name__ == "__main__":
    sys.exit(main())
