"""Scores that the cache knows: computed once, the same to the last bit, bounded, freed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.cache.scores import SCORES_A_TOKEN
from plait.runtime.engine import Engine
from plait.runtime.sequence import SamplingParams, ScoredText, ScoreRequest

from .bench import ask, drain, ids, make


def by_context(text: str) -> Mapping[str, float]:
    """Give next characters by the whole text."""
    weights = {c: 1.0 + hash_of(text + c) % 97 for c in "abc"}
    total = sum(weights.values())
    return {c: weight / total for c, weight in weights.items()}


def hash_of(text: str) -> int:
    value = 7
    for char in text:
        value = (value * 31 + ord(char)) % 1_000_003
    return value


def request(name: str, prompt: str, *choices: str) -> ScoreRequest:
    texts = tuple(ScoredText(ids(prompt + choice), len(prompt)) for choice in choices)
    return ScoreRequest(name, texts)


def answer(engine: Engine, asked: ScoreRequest) -> tuple[tuple[float, ...], ...]:
    return drain(engine, asked)[asked.id].last.logprobs


def computed(engine: Engine) -> tuple[int, int]:
    return engine.stats().num_steps, engine.stats().num_computed_tokens


SHORT = SamplingParams(temperature=0.0, max_tokens=5)
LABELS = ("ab", "abc", "ac", "b", "bca", "cab")


@pytest.mark.parametrize("prompt", ["a", "ab" * 8, "abc" * 11, "c" * 47])
def test_the_same_choices_after_the_same_text_cost_no_pass_again(prompt: str) -> None:
    engine = make(by_context)
    first = answer(engine, request("first", prompt, *LABELS))
    before = computed(engine)
    again = drain(engine, request("again", prompt, *LABELS))["again"].last
    assert computed(engine) == before
    assert again.logprobs == first  # to the last bit
    assert again.usage.cached_tokens == again.usage.prompt_tokens
    assert first == answer(make(by_context, is_caching=False), request("cold", prompt, *LABELS))


def test_of_choices_that_are_known_in_part_the_rest_is_computed() -> None:
    engine = make(by_context)
    prompt = "abc" * 7
    answer(engine, request("first", prompt, "ab", "b"))
    before = computed(engine)[1]
    found = answer(engine, request("more", prompt, "ab", "b", "abca"))
    assert computed(engine)[1] - before == 2  # the rows after "ab" and after "abc"
    assert found == answer(make(by_context), request("cold", prompt, "ab", "b", "abca"))


def test_each_beginning_of_the_choices_is_computed_once() -> None:
    labels = [f"{a}{b}{c}" for a in "abc" for b in "abc" for c in "abc"]
    engine = make(by_context)
    answer(engine, request("warm", "abc" * 5, "a"))
    before = computed(engine)[1]
    found = answer(engine, request("s", "abc" * 5, *labels))
    # After the prompt: known for "a" alone. After 3 first and 9 first two characters; the
    # last row of the prompt is computed again for "b" and "c".
    assert computed(engine)[1] - before == 1 + 3 + 9
    assert [len(row) for row in found] == [3] * 27


def test_choices_that_are_equal_or_begin_each_other_are_scored_as_alone() -> None:
    together = answer(make(by_context), request("s", "abca", "ab", "ab", "a", "abcab"))
    for choice, row in zip(("ab", "ab", "a", "abcab"), together, strict=True):
        assert answer(make(by_context), request("alone", "abca", choice)) == (row,)


def test_a_score_needs_the_text_before_it_in_the_cache() -> None:
    engine = make(by_context, num_blocks=8)
    prompt = "abc" * 11
    answer(engine, request("first", prompt, "ab"))
    for i in range(6):  # push it out
        drain(engine, ask(f"r{i}", "xyz"[i % 3] * 100))
    before = computed(engine)[1]
    answer(engine, request("again", prompt, "ab"))
    assert computed(engine)[1] > before


def test_what_is_kept_is_bounded_by_the_pool() -> None:
    engine = make(by_context, num_blocks=4, max_context=64)
    limit = SCORES_A_TOKEN * 4 * 16
    seen = 0
    for i in range(60):
        prompt = f"{i:02}" + "abc" * 3
        labels = [a + b for a in "abc" for b in "abc"]
        first = answer(engine, request(f"s{i}", prompt, *labels))
        assert engine._cache.scores.num_scores <= limit
        seen = max(seen, engine._cache.scores.num_scores)
        assert answer(engine, request(f"t{i}", prompt, *labels)) == first
    assert seen > limit // 2


def test_an_empty_cache_keeps_no_score() -> None:
    engine = make(by_context)
    answer(engine, request("s", "abc" * 20, "ab", "c"))
    assert engine._cache.scores.num_scores > 0
    engine.reset_cache()
    engine.check()
    assert engine._cache.scores.num_scores == 0


def test_without_a_cache_all_is_computed_each_time() -> None:
    engine = make(by_context, is_caching=False)
    answer(engine, request("first", "abca", "ab"))
    before = computed(engine)[1]
    answer(engine, request("again", "abca", "ab"))
    assert computed(engine)[1] - before == 5


def test_a_stand_in_that_sees_where_an_output_starts_is_asked_anew_for_another_start() -> None:
    engine = make(lambda text: "bc" if text.endswith("a") else "a")
    for start in (1, 2):
        asked = ScoreRequest(f"s{start}", (ScoredText(ids("abc"), start),))
        cold = make(lambda text: "bc" if text.endswith("a") else "a")
        assert answer(engine, asked) == answer(cold, asked)


TEXTS = st.lists(st.text("abc", min_size=2, max_size=40), min_size=1, max_size=6)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.integers(1, 30)), min_size=1, max_size=12), st.booleans())
def test_warm_scores_are_cold_ones_bit_for_bit(
    rounds: list[tuple[list[str], int]], is_tight: bool
) -> None:
    engine = make(by_context, num_blocks=12 if is_tight else 200, block_size=4, budget=24)
    for i, (texts, start) in enumerate(rounds):
        scored = tuple(ScoredText(ids(t), min(start, len(t) - 1)) for t in texts)
        asked = ScoreRequest(f"s{i}", scored)
        cold = make(by_context, is_caching=False, block_size=4)
        assert answer(engine, asked) == answer(cold, asked)
        drain(engine, ask(f"r{i}", texts[0][:20], SHORT))  # grows and splits nodes, and evicts
