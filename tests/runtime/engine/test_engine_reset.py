"""The cache is forgotten only while nothing runs on it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.runtime.errors import RequestError

from .bench import GREEDY, ask, drain, make

PROMPT = "a prompt that fills some blocks of the cache"


def test_a_reset_while_requests_run_is_refused_and_changes_nothing() -> None:
    engine = make()
    drain(engine, ask("before", PROMPT))
    engine.add(ask("a", PROMPT))
    engine.add(ask("b", PROMPT))
    engine.step()
    before = engine.stats()
    with pytest.raises(RequestError, match="2 requests run; try later"):
        engine.reset_cache()
    assert engine.stats() == before
    results = drain(engine)
    assert {r.last.usage.cached_tokens for r in results.values()} == {len(PROMPT) - 1}


def test_a_reset_is_refused_while_a_request_waits_for_its_first_step() -> None:
    engine = make()
    engine.add(ask("a", PROMPT))
    with pytest.raises(RequestError, match="1 requests run"):
        engine.reset_cache()
    assert set(drain(engine)) == {"a"}


def test_after_a_reset_a_prompt_is_cold_again() -> None:
    engine = make()
    one = replace(GREEDY, max_tokens=1)
    cold = drain(engine, ask("cold", PROMPT, one))["cold"]
    engine.reset_cache()
    engine.check()
    assert engine.stats().num_free_blocks == engine.stats().num_blocks
    again = drain(engine, ask("again", PROMPT, one))["again"]
    assert again.last.usage.cached_tokens == 0
    assert again.text == cold.text
