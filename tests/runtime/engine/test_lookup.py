"""The lookup finds what a scan of the whole text finds."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.runtime.sequence import Int32
from plait.runtime.speculation import lookup
from plait.runtime.speculation.lookup import LONGEST, MAX_PLACES, Lookup, alike_tokens

SIZE = 64
SAME: Int32 = np.arange(SIZE, dtype=np.int32)


def lookup_of(tokens: list[int], kinds: Int32 = SAME) -> Lookup:
    return Lookup(np.array(tokens, np.int32), kinds)


def scan(tokens: list[int]) -> tuple[int | None, int]:
    """Find the match of a text's end by looking everywhere."""
    last = len(tokens) - 1
    singles = [place for place in range(last) if tokens[place] == tokens[last]]
    if not singles:
        return None, 0
    pairs = [place for place in singles if place and tokens[place - 1] == tokens[last - 1]]
    lengths = {}
    for place in [singles[-1], *pairs[-MAX_PLACES:]]:
        length = 1
        while (
            length < LONGEST and place >= length and tokens[place - length] == tokens[-1 - length]
        ):
            length += 1
        lengths[place] = length
    best = max(lengths, key=lambda place: (lengths[place], place))
    return best + 1, lengths[best]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60))
def test_it_finds_the_longest_match_and_of_those_the_latest(tokens: list[int]) -> None:
    found = lookup_of(tokens)
    assert (found.at, found.len) == scan(tokens)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=30),
    st.lists(st.integers(0, 3), max_size=60),
)
def test_what_is_pushed_counts_as_what_was_given(first: list[int], rest: list[int]) -> None:
    found = lookup_of(first)
    tokens = list(first)
    for token in rest:
        at = found.at
        goes_on = at is not None and tokens[at] == token
        expected = (at + 1, min(found.len + 1, LONGEST)) if goes_on and at is not None else None
        tokens.append(token)
        found.push(token)
        assert (found.at, found.len) == (scan(tokens) if expected is None else expected)
    whole = lookup_of(tokens)
    assert (found._places, found._pairs) == (whole._places, whole._pairs)
    assert (found._previous, found.tokens) == (whole._previous, tokens)


def test_a_match_that_goes_on_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lookup_of([*range(30), 0, 1, 2])
    monkeypatch.setattr(Lookup, "find", None)
    for token in range(3, 30):
        found.push(token)
    assert (found.at, found.len) == (30, LONGEST)


def test_a_search_looks_at_a_bounded_number_of_places(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lookup_of([5, 1, 2, 9, *([1, 2, 3] * 100), 5])
    num_seen = 0
    compare = Lookup._common_len

    def count(self: Lookup, end: list[int], place: int) -> int:
        nonlocal num_seen
        num_seen += 1
        return compare(self, end, place)

    monkeypatch.setattr(Lookup, "_common_len", count)
    assert found.find([5, 1, 2])[1] == 2, "the place behind the first 5 is too long ago"
    assert num_seen <= MAX_PLACES


def test_only_the_end_of_a_long_prompt_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "MAX_GIVEN", 5)
    found = lookup_of([7, 8, 9, 1, 2, 3, 4, 7])
    assert found.tokens == [1, 2, 3, 4, 7]
    assert found.at is None


def test_words_are_alike_with_and_without_a_blank() -> None:
    kinds = alike_tokens([b"Maria", b" Maria", None, b" Lopez", b"", b" "], 8)
    assert kinds.tolist() == [0, 0, 2, 3, 4, 5, 6, 7]
    text = lookup_of([7, 1, 3, 6, 0], kinds)
    assert (text.at, text.len) == (2, 1)
    text.push(3)
    assert (text.at, text.len) == (3, 2)


def test_random_long_texts_are_searched_as_by_a_scan() -> None:
    rng = random.Random(1)
    tokens = [rng.randrange(3) for _ in range(500)]
    for end in range(1, 500, 7):
        found = lookup_of(tokens[:end])
        assert (found.at, found.len) == scan(tokens[:end])
