"""What a failing model, or a pool that is too small, does to one request and to no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from plait.runtime.engine import Engine
from plait.runtime.sequence import (
    Batch,
)

from .bench import GREEDY, ask, collect, drain, make
from .grammars import Costly


def break_runner(engine: Engine) -> Callable[[], None]:
    """Let every pass fail before it stores anything, until what is given back is called."""
    runner = engine.model.runner
    real_run = runner.run

    def run(batch: Batch) -> torch.Tensor:
        raise OSError("the device fell over")

    def mend() -> None:
        runner.run = real_run  # type: ignore[method-assign]

    runner.run = run  # type: ignore[method-assign]
    return mend


def test_a_failing_model_fails_its_batch_and_no_more() -> None:
    engine = make()
    drain(engine, ask("before", "x" * 40))
    mend = break_runner(engine)
    prompts = ["x" * 40 + "w" * 40] * 2 + ["x" * 40 + "w" * 30 + "z"]
    results = drain(engine, *(ask(f"r{i}", prompt) for i, prompt in enumerate(prompts)))
    assert {r.last.error_code for r in results.values()} == {"internal"}
    assert "the device fell over" in results["r0"].last.error
    mend()
    after = drain(engine, *(ask(f"r{i}", prompt) for i, prompt in enumerate(prompts)))
    assert after["r0"].text == "you said " + "w" * 12
    assert after["r0"].last.usage.cached_tokens == 40
    assert engine.stats().num_failed == 3


def test_non_finite_logits_fail_one_row() -> None:
    engine = make()
    runner = engine.model.runner
    real_run = runner.run

    def run(batch: Batch) -> torch.Tensor:
        logits = real_run(batch)
        logits[1] = float("nan")
        return logits

    runner.run = run  # type: ignore[method-assign]
    engine.add(ask("a", "hello", replace(GREEDY, max_tokens=1)))
    engine.add(ask("b", "other", replace(GREEDY, max_tokens=1)))
    results = collect(engine.step())
    engine.check()
    assert results["a"].last.finish_reason == "length"
    assert results["b"].last.error_code == "non_finite_logits"


def test_a_request_that_outgrows_the_pool_alone_fails_and_frees_it() -> None:
    engine = make(lambda _: "x" * 500, num_blocks=4)
    result = drain(engine, ask("a", "hello"))["a"]
    assert result.last.error_code == "pool_exceeded"
    assert "64" in result.last.error
    assert drain(engine, ask("b", "hello", replace(GREEDY, max_tokens=5)))["b"].text == "xxxxx"


def test_a_mask_over_its_budget_fails_its_own_request_alone() -> None:
    engine = make()
    engine.add(ask("costly", "abc", GREEDY), Costly(3))
    engine.add(ask("plain", "abc", GREEDY))
    results = drain(engine)
    assert results["costly"].last.error_code == "grammar_budget"
    assert results["plain"].last.finish_reason == "stop"
