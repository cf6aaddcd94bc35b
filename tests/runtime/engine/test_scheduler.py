"""What a step computes: order, budget, sharing and preemption."""

from __future__ import annotations

import numpy as np

from plait.runtime.cache.blocks import BlockPool
from plait.runtime.cache.radix import RadixCache
from plait.runtime.config import EngineConfig
from plait.runtime.plan import Plan
from plait.runtime.scheduler import MAX_SKIPS, Scheduler
from plait.runtime.sequence import (
    Ints,
    Sequence,
)


class Bench:
    """A scheduler without an engine: every plan is taken as computed."""

    def __init__(self, num_blocks: int = 64, block_size: int = 4, **options: int) -> None:
        self.pool = BlockPool(num_blocks)
        self.cache = RadixCache(self.pool, block_size)
        self.scheduler = Scheduler(EngineConfig(**options), self.pool, self.cache)  # type: ignore[arg-type]

    def wait(self, name: str, tokens: range | list[int]) -> Sequence:
        sequence = Sequence(name, "", Ints(np.array(tokens, np.int32)), len(tokens))
        self.scheduler.waiting.append(sequence)
        return sequence

    def step(self) -> Plan:
        plan = self.scheduler.schedule()
        self.scheduler.commit(plan)
        for chunk in plan.chunks:
            if chunk.end == len(chunk.sequence.tokens):
                chunk.sequence.tokens.extend((1,))
        return plan

    def names(self) -> list[str]:
        return [chunk.sequence.request_id for chunk in self.step().chunks]


def test_decodes_come_before_prefill_chunks_in_one_batch() -> None:
    bench = Bench(token_budget=8)
    bench.wait("short", [1, 2, 3])
    bench.step()
    bench.wait("long", range(20))
    plan = bench.step()
    assert [(c.sequence.request_id, c.end - c.start) for c in plan.chunks] == [
        ("short", 1),
        ("long", 7),
    ]


def test_tokens_that_come_at_once_are_one_chunk_after_the_decodes() -> None:
    bench = Bench(token_budget=8)
    first = bench.wait("first", [1, 2, 3])
    bench.wait("second", [4, 5, 6])
    bench.step()
    first.tokens.extend([*range(100, 109)])
    plans = [bench.step() for _ in range(3)]
    chunks = [[(c.sequence.request_id, c.end - c.start) for c in p.chunks] for p in plans]
    assert chunks == [
        [("second", 1), ("first", 7)],
        [("second", 1), ("first", 3)],
        [("first", 1), ("second", 1)],
    ]


def test_only_the_prompt_s_end_is_shared_before_its_block_is_full() -> None:
    bench = Bench(token_budget=50, block_size=4)
    sequence = bench.wait("a", range(6))
    bench.step()
    sequence.tokens.extend([*range(100, 104)])
    bench.step()
    assert (sequence.num_computed_tokens, sequence.num_published_tokens) == (11, 8)


def test_no_step_exceeds_the_budget() -> None:
    bench = Bench(token_budget=10)
    for i in range(6):
        bench.wait(f"{i}", range(100 * i, 100 * i + 17))
    for _ in range(30):
        assert sum(c.end - c.start for c in bench.step().chunks) <= 10


def test_a_follower_starts_where_the_leader_will_have_written() -> None:
    bench = Bench(token_budget=100)
    leader = bench.wait("leader", range(10))
    follower = bench.wait("follower", [*range(10), 50, 51])
    plan = bench.scheduler.schedule()
    assert [(c.start, c.end) for c in plan.chunks] == [(0, 10), (10, 12)]
    assert follower.block_table.view[:2].tolist() == leader.block_table.view[:2].tolist()
    assert follower.block_table.view[2] != leader.block_table.view[2]
    assert len(plan.copies) == 2


def test_the_source_of_a_copy_is_locked_until_the_step_is_done() -> None:
    bench = Bench()
    old = bench.wait("old", range(6))
    bench.step()
    bench.scheduler.release(old)
    assert bench.cache.num_locked == 0
    bench.wait("new", [*range(6), 60])
    plan = bench.scheduler.schedule()
    assert len(plan.copies) == 2
    assert bench.cache.num_locked == 3  # the shared block, the source, and the copy
    bench.scheduler.commit(plan)
    assert bench.cache.num_locked == 2


def test_a_copy_of_a_copy_reads_the_first_source() -> None:
    bench = Bench(token_budget=100)
    bench.wait("old", range(6))
    bench.step()
    old = bench.scheduler.running[0].block_table.view[1] * 4
    bench.wait("second", [*range(6), 60])
    third = bench.wait("third", [*range(6), 60, 70])
    plan = bench.step()
    target = third.block_table.view[1] * 4
    second_block = plan.chunks[1].sequence.block_table.view[1] * 4
    assert [plan.copies[target], plan.copies[target + 1]] == [old, old + 1]
    assert plan.copies[target + 2] == second_block + 2
    assert not set(plan.copies.values()) & set(plan.copies)


def test_a_running_prefill_takes_over_what_others_computed() -> None:
    bench = Bench(token_budget=12, num_blocks=100)
    first = bench.wait("first", range(40))
    bench.step()
    second = bench.wait("second", range(40))
    computed = 12
    while second.num_computed_tokens < 40:
        computed += sum(c.end - c.start for c in bench.step().chunks if c.end <= 40)
    assert first.num_computed_tokens >= 40
    assert computed == 41


def test_the_newest_is_preempted_and_comes_back_first() -> None:
    bench = Bench(num_blocks=5, block_size=4, max_running=3)
    bench.wait("old", range(6))
    bench.wait("new", range(100, 105))
    bench.wait("later", range(200, 205))
    assert bench.names() == ["old", "new"]
    preempted: list[Sequence] = []
    while not preempted:
        preempted = bench.step().preempted
    assert [s.request_id for s in preempted] == ["new"]
    assert [s.request_id for s in bench.scheduler.waiting] == ["new", "later"]
    assert (
        preempted[0].num_computed_tokens
        == preempted[0].num_published_tokens
        == len(preempted[0].block_table)
        == 0
    )


def test_a_sequence_is_overtaken_a_bounded_number_of_times() -> None:
    bench = Bench(num_blocks=40, block_size=4, max_running=4)
    bench.wait("runs", range(8))
    bench.step()
    large = bench.wait("large", range(1000, 1150))
    overtakers = 0
    for i in range(100):
        small = bench.wait(f"{i}", [200 + i])
        bench.step()
        if small in bench.scheduler.running:
            overtakers += 1
            bench.scheduler.release(small)
    assert large.num_skips == overtakers == MAX_SKIPS


def test_guesses_get_what_is_left_and_give_it_back() -> None:
    bench = Bench(num_blocks=6, block_size=4, token_budget=20)
    sequence = bench.wait("a", range(6))
    bench.step()
    plan = bench.scheduler.schedule()
    (chunk,) = plan.chunks
    assert bench.scheduler.lend(chunk, 99, plan) == 17, "the pool has 24 slots, and 7 are used"
    assert (bench.pool.num_free, plan.budget) == (0, 2)
    plan.chunks = [chunk._replace(draft=tuple(range(17)))]
    bench.scheduler.commit(plan)
    assert sequence.num_computed_tokens == 7
    sequence.tokens.extend([*range(4)])
    sequence.num_computed_tokens = 9
    bench.scheduler.take_back(plan)
    assert (len(sequence.block_table), bench.pool.num_free) == (3, 3)


def test_guesses_stay_in_the_budget() -> None:
    bench = Bench(token_budget=3)
    bench.wait("a", range(3))
    bench.step()
    plan = bench.scheduler.schedule()
    assert bench.scheduler.lend(plan.chunks[0], 99, plan) == 2
    assert plan.budget == 0
