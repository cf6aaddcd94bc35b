"""A request that is cancelled leaves nothing behind: K05, K06 and K11."""

from __future__ import annotations

import gc
import random
import weakref

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.sequence import (
    Int32,
    Output,
    Request,
    ScoredText,
    ScoreRequest,
)

from .bench import WILD, answers, ask, check_idle, collect, drain, ids, make


# K05
@pytest.mark.parametrize("at_step", [0, 1, 4, 5, 6, 7, 9])
def test_an_abort_near_the_end_is_harmless(at_step: int) -> None:
    engine = make(lambda _: "four")
    engine.add(ask("a", "hello"))
    outputs: list[Output] = []
    for step in range(12):
        if step == at_step:
            engine.abort("a")
            engine.abort("a")
            engine.abort("never seen")
        outputs += engine.step()
        engine.check()
    engine.abort("a")
    assert len([o for o in outputs if o.finish_reason]) == 1
    assert engine.step() == []
    requests = [ask(f"r{i}", f"hello {i}", WILD, seed=i) for i in range(20)]
    assert answers(drain(engine, *requests)) == answers(drain(make(lambda _: "four"), *requests))


# K06
def test_a_random_mix_leaves_nothing_behind() -> None:
    engine = make(num_blocks=60, max_context=300, max_running=8, budget=64)
    rng = random.Random(7)
    live: list[weakref.ref[Int32]] = []
    terminal: list[str] = []
    accepted: list[str] = []
    refused: set[str] = set()
    for i in range(200):
        prompt = ("shared " * 10 if rng.random() < 0.5 else "") + f"request {i}"
        kind = rng.choice(["plain", "plain", "abort", "long", "double", "score"])
        request: Request | ScoreRequest = ask(f"r{i}", prompt, WILD, seed=i)
        if kind == "long":
            request = ask(f"r{i}", "x" * 400)
        if kind == "score":
            request = ScoreRequest(f"r{i}", (ScoredText(ids(prompt), 3), ScoredText(ids("hi"), 1)))
        try:
            engine.add(request)
            accepted.append(request.id)
            if kind == "double":
                engine.add(request)
        except RequestError as e:
            refused.add(e.code)
        if isinstance(request, Request):
            live.append(weakref.ref(request.prompt))
        for _ in range(rng.randrange(3)):
            terminal += [o.request_id for o in engine.step() if o.finish_reason]
            engine.check()
        if kind == "abort" or rng.random() < 0.1:
            engine.abort(rng.choice(accepted))
    while engine.has_work:
        terminal += [o.request_id for o in engine.step() if o.finish_reason]
        engine.check()
    request = ask("none", "none")
    gc.collect()
    stats = engine.stats()
    assert sorted(terminal) == sorted(accepted)
    check_idle(engine)
    assert all(prompt() is None for prompt in live)
    assert stats.num_finished + stats.num_aborted == len(accepted)
    assert refused == {"context_exceeded", "duplicate_id"}
    engine.reset_cache()
    assert engine.stats().num_free_blocks == 60


# K11
def test_a_live_id_is_refused_and_the_first_is_unharmed() -> None:
    engine = make()
    engine.add(ask("a", "hello"))
    with pytest.raises(RequestError, match="'a' is still running"):
        engine.add(ask("a", "other"))
    assert drain(engine)["a"].text == "you said hello"
    assert drain(engine, ask("a", "other"))["a"].text == "you said other"


def test_cancelled_requests_leave_their_slots_at_once() -> None:
    engine = make(lambda _: "x" * 900, max_running=2)
    for i in range(50):
        engine.add(ask(f"r{i}", f"hello {i}"))
        engine.step()
        engine.abort(f"r{i}")
    cancelled = collect(engine.step())
    assert {r.last.finish_reason for r in cancelled.values()} == {"cancelled"}
    assert not engine.has_work
    engine.add(ask("normal", "hello"))
    assert [o.text for o in engine.step()] == ["x"]
