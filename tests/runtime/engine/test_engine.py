"""The engine serves requests on the scripted model, and accounts for every block."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plait.runtime.errors import RequestError
from plait.runtime.sequence import (
    Request,
    ScoredText,
    ScoreRequest,
)

from .bench import GREEDY, ask, drain, ids, make


def test_one_request_is_answered() -> None:
    result = drain(make(), ask("a", "hello there"))["a"]
    assert result.text == "you said hello there"
    assert result.last.finish_reason == "stop"
    assert bytes(result.last.token_ids).decode() == result.text
    assert result.last.usage.prompt_tokens == 11
    assert result.last.usage.output_tokens == len(result.text) + 1  # the end token is drawn too


def test_max_tokens_ends_with_length() -> None:
    result = drain(make(), ask("a", "hi", replace(GREEDY, max_tokens=3)))["a"]
    assert (result.text, result.last.finish_reason) == ("you", "length")


def test_max_tokens_zero_ends_at_once() -> None:
    engine = make()
    result = drain(engine, ask("a", "hi", replace(GREEDY, max_tokens=0)))["a"]
    assert (result.text, result.last.finish_reason) == ("", "length")
    assert engine.stats().num_steps == 0


def test_no_max_tokens_means_up_to_the_end_of_the_context() -> None:
    engine = make(lambda _: "x" * 500, max_context=64)
    result = drain(engine, ask("a", "hello"))["a"]
    assert (len(result.text), result.last.finish_reason) == (59, "length")


def test_a_stop_string_is_cut_off_and_named() -> None:
    sampling = replace(GREEDY, stop=("said",))
    result = drain(make(), ask("a", "hi", sampling))["a"]
    assert (result.text, result.last.stop_reason) == ("you ", "said")
    assert bytes(result.last.token_ids).decode() + result.last.tail == "you "


@pytest.mark.parametrize(
    ("request_", "code", "numbers"),
    [
        (ask("a", ""), "empty_prompt", ()),
        (ask("a", "x" * 100), "context_exceeded", ("100", "100")),
        (ask("a", "x" * 90), "pool_exceeded", ("90", "64")),
        (ask("a", "x" * 64), "pool_exceeded", ("64", "64")),
        (Request("a", np.array([5, 999], np.int32)), "invalid_request", ("258",)),
        (ScoreRequest("a", ()), "empty_prompt", ()),
        (ScoreRequest("a", (ScoredText(ids("abc"), 3),)), "invalid_request", ("3",)),
        (ScoreRequest("a", (ScoredText(ids("abc"), 0),)), "invalid_request", ("0",)),
    ],
)
def test_what_can_never_be_served_is_refused_at_once(
    request_: Request | ScoreRequest, code: str, numbers: tuple[str, ...]
) -> None:
    engine = make(num_blocks=4, max_context=100)
    with pytest.raises(RequestError) as caught:
        engine.add(request_)
    assert caught.value.code == code
    assert all(number in str(caught.value) for number in numbers)
    assert not engine.has_work


def test_a_full_queue_refuses() -> None:
    engine = make(max_waiting=2)
    engine.add(ask("a", "hi"))
    engine.add(ask("b", "hi"))
    with pytest.raises(RequestError, match="queue is full"):
        engine.add(ask("c", "hi"))
    assert set(drain(engine)) == {"a", "b"}
    assert set(drain(engine, ask("c", "hi"))) == {"c"}
    for name in "defg":
        engine.add(ask(name, "hi"))
        engine.abort(name)
        engine.step()


def test_64_equal_cold_prompts_are_prefilled_once() -> None:
    engine = make()
    prompt = "x" * 505 + "prompt!"
    results = drain(engine, *(ask(f"r{i}", prompt) for i in range(64)))
    num_outputs = len("you said ") + 12
    stats = engine.stats()
    assert stats.num_computed_tokens == 512 + 63 + 64 * num_outputs
    assert {r.text for r in results.values()} == {"you said xxxxxprompt!"}


def test_followers_share_what_a_leader_writes_in_the_same_step() -> None:
    engine = make(budget=1000)
    prompt = "x" * 250 + "here"
    drain(
        engine, *(ask(f"r{i}", prompt + f" {i}", replace(GREEDY, max_tokens=1)) for i in range(9))
    )
    assert engine.stats().num_steps == 1
    assert engine.stats().num_computed_tokens == len(prompt + " ") + 9


def test_without_caching_nothing_is_shared() -> None:
    engine = make(is_caching=False)
    drain(engine, *(ask(f"r{i}", "x" * 100, replace(GREEDY, max_tokens=1)) for i in range(5)))
    drain(engine, ask("again", "x" * 100, replace(GREEDY, max_tokens=1)))
    assert engine.stats().num_computed_tokens == 600
    assert engine.stats().num_cached_tokens == engine.stats().num_cached_blocks == 0


def test_the_next_turn_finds_prompt_and_output_in_the_cache() -> None:
    engine = make()
    first = drain(engine, ask("a", "tell me something"))["a"]
    second = drain(engine, ask("b", "tell me something" + first.text + " and more"))["b"]
    # All but the last drawn token (the end) was computed.
    assert second.last.usage.cached_tokens == len("tell me something" + first.text)


def test_namespaces_do_not_share() -> None:
    engine = make()
    drain(engine, ask("a", "a secret prompt"))
    spy = replace(ask("b", "a secret prompt"), namespace="other")
    assert drain(engine, spy)["b"].last.usage.cached_tokens == 0


@pytest.mark.parametrize("budget", [7, 64, 512])
def test_scores_do_not_depend_on_chunks(budget: int) -> None:
    request = ScoreRequest("s", (ScoredText(ids("abcdefghij" * 10), 1),))
    found = drain(make(budget=budget), request)["s"].last.logprobs
    assert found == drain(make(budget=2000), request)["s"].last.logprobs
    assert len(found[0]) == 99
