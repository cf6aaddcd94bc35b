"""Whatever the pool, the chunks, the prompts and the aborts: answers as without limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.config import EngineConfig
from plait.runtime.engine import Engine
from plait.runtime.model.interface import Logits, Runner
from plait.runtime.model.scripted import scripted_model
from plait.runtime.sequence import (
    Batch,
    Hint,
    Output,
    Request,
    SamplingParams,
    ScoredText,
    ScoreRequest,
)

from .bench import Result, check_idle, collect, drain, ids
from .grammars import Digits


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
        return ScoreRequest(name, texts, hint=hint_of(index, num_output))
    sampling = SamplingParams(
        temperature=1.5,
        max_tokens=num_output,
        min_tokens=num_output // 2,
        stop=(("b<", "3"), (), ())[index % 3],
    )
    namespace, hint = "ab"[index % 5 == 4], hint_of(index, num_output)
    return Request(name, ids(prompt), sampling, seed=index, namespace=namespace, hint=hint)


def hint_of(index: int, num_output: int) -> Hint | None:
    """Foretell some futures, true or not."""
    if index % 3 == 0:
        return None
    return Hint(f"r{index - 1}" if index % 3 == 1 else None, num_output % 4, num_output)


def grammar_of(request: Request | ScoreRequest) -> Digits | None:
    """Constrain every seventh length to digits, which may end before or after `max_tokens`."""
    if isinstance(request, ScoreRequest) or request.sampling.max_tokens is None:
        return None
    num_output = request.sampling.max_tokens
    return Digits(num_output + request.seed % 3) if num_output % 7 == 3 else None


def answer(result: Result) -> tuple[object, ...]:
    output = result.last
    logprobs = tuple(np.round(found, 4).tolist() for found in output.logprobs)
    return (
        result.text,
        output.token_ids,
        output.tail,
        output.finish_reason,
        output.stop_reason,
        logprobs,
    )


def alone(request: Request | ScoreRequest) -> tuple[object, ...]:
    """Answer one request on an engine without limits and without a cache."""
    model = scripted_model(say, num_blocks=64, max_context=1024)
    engine = Engine(model, EngineConfig(token_budget=2000, is_prefix_caching=False))
    engine.add(request, grammar_of(request))
    return answer(drain(engine)[request.id])


class Frail:
    """A runner that fails in some steps, before it has stored anything."""

    largest_ids: Sequence[int] = ()

    def __init__(self, runner: Runner, run: Run) -> None:
        self.limits = runner.limits
        self._runner = runner
        self._run = run

    def run(self, batch: Batch) -> Logits:
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
        self.outputs: list[Output] = []
        self.added: dict[str, Request | ScoreRequest] = {}
        self.aborted: set[str] = set()

    def play(self) -> None:
        while self.engine.has_work or self.step <= 13:
            for index, (arrival, prompt, num_output, abort_after) in enumerate(self.case.events):
                if arrival == self.step and len(prompt) < self.pool_tokens:
                    request = request_of(index, prompt, num_output)
                    self.engine.add(request, grammar_of(request))
                    self.added[request.id] = request
                if abort_after is not None and arrival + abort_after == self.step:
                    self.engine.abort(f"r{index}")
                    self.aborted.add(f"r{index}")
            self.outputs += self.engine.step()
            self.engine.check()
            self.step += 1
            assert self.step < 5000, "no progress"

    def verify(self) -> None:
        results = collect(self.outputs)
        assert set(results) == set(self.added)
        for name, result in results.items():
            output = result.last
            if output.error_code is None:
                assert answer(result) == alone(self.added[name])
            elif output.error_code == "pool_exceeded":
                used = output.usage.prompt_tokens + output.usage.output_tokens
                assert used > self.pool_tokens
            else:
                assert output.error_code in ("cancelled", "internal")
        check_idle(self.engine)


@pytest.mark.slow
@settings(max_examples=120, derandomize=True, deadline=None)
@given(cases)
def test_limits_change_nothing_but_time(case: Case) -> None:
    run = Run(case)
    run.play()
    run.verify()
