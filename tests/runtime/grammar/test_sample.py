"""Random texts of a grammar are texts of the grammar, and end."""

from __future__ import annotations

import json
import random
import re

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar import sample as sample_module
from plait.runtime.grammar.pool import IDLE, Pool
from plait.runtime.grammar.sample import matches, sample
from plait.runtime.grammar.state import State

from .rules import arrays, brackets, terminal
from .tokens import BYTES

POOL = Pool(BYTES)


def regex(pattern: str) -> State:
    with POOL.using(IDLE):
        return POOL.pushdown.closure(POOL.pushdown.push(terminal(pattern, POOL), None))


def rule(name: str) -> State:
    node = arrays(POOL) if name == "arrays" else brackets(POOL)
    with POOL.using(IDLE):
        return POOL.pushdown.closure(POOL.pushdown.push(node, None))


@pytest.mark.parametrize("max_bytes", [0, 1, 20, 400])
@pytest.mark.parametrize(
    "pattern",
    [
        *["", "abc", ".*", r"[\w.]+@[a-z]{2,9}\.com", "(?=.*a)(?=.*b).{8,30}", "(?!.*foo)[fo]*x"],
        *["a{300}", "é|[à-ü]{3,}", r"(?:\b\w+\b ?){2,40}", "[ab]*a[ab]{9}"],
    ],
)
def test_a_sample_matches_its_regex(pattern: str, max_bytes: int) -> None:
    start = regex(pattern)
    for seed in range(8):
        text = sample(start, POOL, random.Random(seed), max_bytes).decode()
        assert re.fullmatch(pattern, text)
        assert matches(start, POOL, text)


@pytest.mark.parametrize("max_bytes", [0, 30, 1000])
def test_a_sample_of_nested_arrays_is_json_and_ends(max_bytes: int) -> None:
    start = rule("arrays")
    for seed in range(8):
        text = sample(start, POOL, random.Random(seed), max_bytes).decode()
        json.loads(re.sub(r"(?<=[\[,])a", '"a"', text))
        assert matches(start, POOL, text)


def test_samples_are_the_same_for_one_seed_and_others_for_others() -> None:
    start = rule("brackets")
    texts = [sample(start, POOL, random.Random(seed), 40) for seed in range(30)]
    again = [sample(start, POOL, random.Random(seed), 40) for seed in range(30)]
    assert texts == again
    assert len(set(texts)) > 10


def test_a_long_sample_takes_a_short_way_to_its_end() -> None:
    start = regex("(?:a{500}b|[ab]*)c{3}")
    for seed in range(8):
        assert len(sample(start, POOL, random.Random(seed), 40)) <= 25


def test_matches_tells_whole_texts_from_beginnings_and_others() -> None:
    start = regex("ab+é?")
    assert all(matches(start, POOL, text) for text in ["ab", "abb", "abé"])
    for text in ["a", "abéé", "", "\ud800", "ab\udcc3"]:
        assert not matches(start, POOL, text)


def test_a_grammar_whose_end_is_too_far_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_module, "MAX_SEARCHED", 50)
    with pytest.raises(RequestError, match="no end"):
        sample(regex("[ab]{900}"), POOL, random.Random(0), 20)
