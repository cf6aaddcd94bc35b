"""Terminals byte by byte: plain text, JSON strings with any escape, literals."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.errors import RequestError
from plait.runtime.grammar.budget import Budget
from plait.runtime.grammar.build import build_language
from plait.runtime.grammar.expr import ANY, Both, Expr, Repeat
from plait.runtime.grammar.pool import IDLE, Pool
from plait.runtime.grammar.regex import parse
from plait.runtime.grammar.terminal import LocalState
from plait.runtime.grammar.vocabulary import Vocabulary

from .naive import PLACED, TEXTS, fits
from .test_utf8 import escapes
from .tokens import BYTES

POOL = Pool(BYTES)


def end_of(state: LocalState, data: bytes) -> LocalState | None:
    """Give where `data` leads, by `groups`; `edges` must say the same."""
    for byte in data:
        found = [after for group, after in state.groups if byte in group]
        assert len(found) <= 1
        assert state.edges.get(byte) is (found[0] if found else None)
        if not found:
            return None
        state = found[0]
    return state


def start(expr: Expr, is_json: bool = False) -> LocalState:
    with POOL.using(IDLE):
        language = build_language(expr, POOL.languages)
        return POOL.locals.start(language, "json" if is_json else "plain")


@settings(derandomize=True, max_examples=100, deadline=None)
@given(PLACED, st.lists(TEXTS, min_size=1, max_size=6))
def test_plain_text_is_read_as_its_utf8(expr: Expr, texts: list[str]) -> None:
    state = start(expr)
    for text in texts:
        after = end_of(state, text.encode())
        assert (after is not None and after.is_final) == fits(expr, text)


CHARS = st.sampled_from(list('ab\n"\\/é🙏\x01'))


@settings(derandomize=True, max_examples=100, deadline=None)
@given(
    st.sampled_from([r".{2,4}", r"[^a]*", r"(?s)(?!.*b).{1,3}", "[ab\U0001f600-\U0001f64f]+"]),
    st.tuples(st.integers(0, 3), st.integers(0, 4)),
    st.lists(CHARS, max_size=6).map("".join),
    st.randoms(use_true_random=False),
)
def test_a_json_string_is_read_however_it_is_spelt(
    pattern: str, bounds: tuple[int, int], text: str, rng: random.Random
) -> None:
    low, more = bounds
    expr = Both((parse(pattern), Repeat(ANY, low, low + more)))
    state = start(expr, is_json=True)
    body = b"".join(rng.choice(escapes(char)) for char in text)
    assert json.loads(b'"' + body + b'"') == text
    after = end_of(state, body + b'"')
    assert (after is not None and after.is_last) == fits(expr, text)
    assert end_of(state, body) is None or not end_of(state, body).is_final  # type: ignore[union-attr]


def test_a_json_string_ends_with_its_quote_and_a_literal_with_its_last_byte() -> None:
    state = start(parse("ab?"), is_json=True)
    assert end_of(state, b'"') is None
    end = end_of(state, b'a"')
    assert end is not None
    assert end is POOL.locals.end
    assert end.is_last
    literal = POOL.locals.literal(b"xy")
    assert literal is POOL.locals.literal(b"xy")
    assert end_of(literal, b"xy") is POOL.locals.end
    assert end_of(literal, b"x") is POOL.locals.literal(b"y")
    assert end_of(literal, b"y") is None


def test_equal_places_are_one_object() -> None:
    state = start(parse("(?:ab|cb)*é"))
    assert end_of(state, b"ab") is state
    assert end_of(state, b"a") is end_of(state, b"c")
    assert end_of(state, b"\xc3") is end_of(state, b"ab\xc3")


def test_places_that_lead_nowhere_are_left_out() -> None:
    state = start(parse(r"a(?!b)b|ac|é(?=x)y"))
    assert set(state.edges) == {ord("a")}
    (after,) = (to for _, to in state.groups)
    assert set(after.edges) == {ord("c")}


def test_what_no_token_spells_is_left_out() -> None:
    pool = Pool(Vocabulary([b"a", b"b", b"\xc3", b'"', b"\\", b"n"], (), 6))
    with pool.using(IDLE):
        language = build_language(parse("a(?:é|b)|c"), pool.languages)
        state = pool.locals.start(language, "plain")
        assert set(state.edges) == {ord("a")}
        assert set(state.edges[ord("a")].edges) == {ord("b")}
        assert not pool.locals.is_live(build_language(parse("é+"), pool.languages), "plain")
        lines = pool.locals.start(build_language(parse("[\nc]"), pool.languages), "json")
        assert set(lines.edges) == {ord("\\")}


@pytest.mark.parametrize("pattern", [r"(?=a)(?:^[ab])*", r"(?!b)(?:(?=\w)\w){2,5}", "(?:é|è){3}"])
def test_a_place_that_ran_out_of_budget_is_right_the_next_time(pattern: str) -> None:
    expr, pool = parse(pattern), Pool(BYTES)
    for num_states in range(1, 300):
        try:
            with pool.using(Budget(60.0, num_states)):
                state = pool.locals.start(build_language(expr, pool.languages), "plain")
                assert state.is_final == fits(expr, "")
                for text in ("a", "ab", "aba", "bab", "ééé", "éè"):
                    after = end_of(state, text.encode())
                    assert (after is not None and after.is_final) == fits(expr, text)
        except RequestError:
            continue
        return
    pytest.fail("the budget was never enough")
