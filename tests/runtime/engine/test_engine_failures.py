"""What a failing model, or a pool that is too small, does to one request and to no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from plait.runtime.engine import Engine
from plait.runtime.errors import RequestError
from plait.runtime.grammar.spec import Bitmask
from plait.runtime.model.interface import Logits
from plait.runtime.scheduler import Scheduler
from plait.runtime.sequence import (
    Batch,
    Sequence,
)

from .bench import GREEDY, ask, collect, drain, make
from .grammars import Costly, Digits


def break_runner(engine: Engine) -> Callable[[], None]:
    """Let every pass fail before it stores anything, until what is given back is called."""
    runner = engine.model.runner
    real_run = runner.run

    def run(batch: Batch) -> Logits:
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

    def run(batch: Batch) -> Logits:
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


class Faulty(Digits):
    """A grammar with a bug that shows at the second token, in its mask or in what follows."""

    def __init__(self, count: int, place: str, seen: str = "") -> None:
        super().__init__(count, seen)
        self.place = place

    def matcher(self) -> Digits:
        return Faulty(self.count, self.place)

    def fill_bitmask(self, row: Bitmask) -> None:
        if self.seen and self.place == "mask":
            raise IndexError("a bug in a mask")
        super().fill_bitmask(row)

    def accept(self, token_id: int) -> bool:
        if self.seen and self.place == "accept":
            raise IndexError("a bug in a step")
        return super().accept(token_id)


@pytest.mark.parametrize("place", ["mask", "accept"])
def test_a_bug_in_a_grammar_fails_its_own_request_alone(place: str) -> None:
    engine = make()
    engine.add(ask("faulty", "abc", GREEDY), Faulty(3, place))
    engine.add(ask("plain", "abc", GREEDY))
    results = drain(engine)
    assert results["faulty"].last.error_code == "internal"
    assert "IndexError: a bug in a" in results["faulty"].last.error
    assert results["plain"].text == "you said abc"
    assert engine.stats().num_held_blocks == 0


@pytest.mark.parametrize("place", ["schedule", "commit"])
def test_what_ended_in_a_step_that_breaks_is_still_said(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a bug")

    engine = make()
    engine.add(ask("running", "hello"))
    engine.add(ask("cancelled", "hello"))
    engine.step()
    engine.add(ask("empty", "hello", replace(GREEDY, max_tokens=0)))
    engine.abort("cancelled")
    monkeypatch.setattr(f"plait.runtime.scheduler.Scheduler.{place}", broken)
    with pytest.raises(KeyError):
        engine.step()
    results = collect(engine.fail_all(RequestError("internal", "a bug")))
    assert {name: result.last.finish_reason for name, result in results.items()} == {
        "running": "error",
        "cancelled": "cancelled",
        "empty": "length",
    }


def test_what_ended_before_a_bug_in_the_same_commit_is_still_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = make()
    engine.add(ask("first", "hello", replace(GREEDY, max_tokens=1)))
    engine.add(ask("second", "hello", replace(GREEDY, max_tokens=1)))
    real_release = Scheduler.release

    def release(self: Scheduler, sequence: Sequence, *, is_kept: bool = True) -> None:
        if sequence.request_id == "second":
            raise KeyError("a bug")
        real_release(self, sequence, is_kept=is_kept)

    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "release", release)
        with pytest.raises(KeyError):
            engine.step()
    results = collect(engine.fail_all(RequestError("internal", "a bug")))
    assert {name: result.last.finish_reason for name, result in results.items()} == {
        "first": "length",
        "second": "error",
    }
