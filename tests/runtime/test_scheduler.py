"""Whatever the pool, the chunks, the prompts and the aborts: answers as without limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.cache.blocks import BlockPool
from plait.runtime.cache.radix import RadixCache
from plait.runtime.config import EngineConfig
from plait.runtime.engine import Engine
from plait.runtime.model.interface import Runner
from plait.runtime.model.scripted import scripted_model
from plait.runtime.scheduler import MAX_SKIPS, Plan, Scheduler
from plait.runtime.sequence import (
    Batch,
    Int32,
    Ints,
    Output,
    Request,
    SamplingParams,
    ScoredText,
    ScoreRequest,
    Sequence,
)


def ids(text: str) -> Int32:
    return np.frombuffer(text.encode(), np.uint8).astype(np.int32)


@dataclass(frozen=True)
class Case:
    """One engine, and what happens to it: `(arrival step, prompt, output, abort after)`."""

    block_size: int
    num_blocks: int
    budget: int
    max_running: int
    events: list[tuple[int, str, int, int | None]]
    failing_steps: frozenset[int]


prompts = st.builds(
    lambda base, cut, end: (base * 30)[:cut] + end,
    st.sampled_from(["ab", "abc", "x"]),
    st.integers(1, 90),
    st.text("xyz", max_size=4),
)
events = st.tuples(st.integers(0, 12), prompts, st.integers(0, 40), st.none() | st.integers(0, 30))
cases = st.builds(
    Case,
    block_size=st.sampled_from([1, 16, 32, 64]),
    num_blocks=st.integers(1, 14),
    budget=st.sampled_from([3, 16, 50, 500]),
    max_running=st.integers(1, 8),
    events=st.lists(events, min_size=1, max_size=10),
    failing_steps=st.frozensets(st.integers(1, 60), max_size=2),
)


def say(text: str) -> str:
    return f"<{text[-7:]}>"


def request_of(index: int, prompt: str, num_output: int) -> Request | ScoreRequest:
    name = f"r{index}"
    if num_output % 5 == 4 and len(prompt) > 2:
        start = max(1, len(prompt) - num_output)
        texts = (ScoredText(ids(prompt), start), ScoredText(ids(prompt[::-1]), start))
        return ScoreRequest(name, texts)
    sampling = SamplingParams(temperature=1.5, max_tokens=num_output, min_tokens=num_output // 2)
    return Request(name, ids(prompt), sampling, seed=index)


def answer(output: Output, text: str) -> tuple[object, ...]:
    logprobs = tuple(np.round(found, 4).tolist() for found in output.logprobs)
    return text, output.token_ids, output.finish_reason, logprobs


def alone(request: Request | ScoreRequest) -> tuple[object, ...]:
    """Answer one request on an engine without limits and without a cache."""
    model = scripted_model(say, num_blocks=64, max_context=1024)
    engine = Engine(model, EngineConfig(token_budget=2000, is_prefix_caching=False))
    engine.add(request)
    text = ""
    while True:
        for output in engine.step():
            text += output.text
            if output.finish_reason is not None:
                return answer(output, text)


class Frail:
    """A runner that fails in some steps, before it has stored anything."""

    def __init__(self, runner: Runner, run: Run) -> None:
        self.limits = runner.limits
        self._runner = runner
        self._run = run

    def run(self, batch: Batch) -> torch.Tensor:
        if self._run.step in self._run.case.failing_steps:
            raise OSError("the device is gone")
        return self._runner.run(batch)


class Run:
    """Plays a case, and checks after each step."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.step = 0
        num_blocks = max(case.num_blocks * 16 // case.block_size, 2)
        model = scripted_model(
            say, block_size=case.block_size, num_blocks=num_blocks, max_context=1024
        )
        model = replace(model, runner=Frail(model.runner, self))
        config = EngineConfig(token_budget=case.budget, max_running=case.max_running)
        self.engine = Engine(model, config)
        self.pool_tokens = num_blocks * case.block_size
        self.texts: dict[str, str] = {}
        self.last: dict[str, Output] = {}
        self.added: dict[str, Request | ScoreRequest] = {}
        self.aborted: set[str] = set()

    def play(self) -> None:
        while self.engine.has_work or self.step <= 13:
            for index, (arrival, prompt, num_output, abort_after) in enumerate(self.case.events):
                if arrival == self.step and len(prompt) < self.pool_tokens:
                    request = request_of(index, prompt, num_output)
                    self.engine.add(request)
                    self.added[request.id] = request
                if abort_after is not None and arrival + abort_after == self.step:
                    self.engine.abort(f"r{index}")
                    self.aborted.add(f"r{index}")
            for output in self.engine.step():
                assert output.request_id not in self.last
                name = output.request_id
                self.texts[name] = self.texts.get(name, "") + output.text
                if output.finish_reason is not None:
                    self.last[name] = output
            self.engine.check()
            self.step += 1
            assert self.step < 5000, "no progress"

    def verify(self) -> None:
        assert set(self.last) == set(self.added)
        for name, output in self.last.items():
            if output.error_code is None:
                found = answer(output, self.texts[name])
                assert found == alone(self.added[name])
            elif output.error_code == "pool_exceeded":
                used = output.usage.prompt_tokens + output.usage.output_tokens
                assert used > self.pool_tokens
            else:
                assert output.error_code in ("cancelled", "internal")
        stats = self.engine.stats()
        assert (stats.held_blocks, stats.locked_blocks) == (0, 0)
        assert (stats.running, stats.waiting) == (0, 0)


@pytest.mark.slow
@settings(max_examples=120, derandomize=True, deadline=None)
@given(cases)
def test_limits_change_nothing_but_time(case: Case) -> None:
    run = Run(case)
    run.play()
    run.verify()


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
    assert follower.blocks.view[:2].tolist() == leader.blocks.view[:2].tolist()
    assert follower.blocks.view[2] != leader.blocks.view[2]
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
    old = bench.scheduler.running[0].blocks.view[1] * 4
    bench.wait("second", [*range(6), 60])
    third = bench.wait("third", [*range(6), 60, 70])
    plan = bench.step()
    target = third.blocks.view[1] * 4
    second_block = plan.chunks[1].sequence.blocks.view[1] * 4
    assert [plan.copies[target], plan.copies[target + 1]] == [old, old + 1]
    assert plan.copies[target + 2] == second_block + 2
    assert not set(plan.copies.values()) & set(plan.copies)


def test_a_running_prefill_takes_over_what_others_computed() -> None:
    bench = Bench(token_budget=12, num_blocks=100)
    first = bench.wait("first", range(40))
    bench.step()
    second = bench.wait("second", range(40))
    computed = 12
    while second.num_computed < 40:
        computed += sum(c.end - c.start for c in bench.step().chunks if c.end <= 40)
    assert first.num_computed >= 40
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
    assert preempted[0].num_computed == preempted[0].num_published == len(preempted[0].blocks) == 0


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
