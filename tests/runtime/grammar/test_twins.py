"""A twin leads on exactly where the language does, for texts up to its horizon."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.grammar.build import build_language
from plait.runtime.grammar.derive import Derivatives
from plait.runtime.grammar.expr import Both, Chars, Concat, Expr, Repeat
from plait.runtime.grammar.language import UNBOUNDED, Language
from plait.runtime.grammar.languages import Languages
from plait.runtime.grammar.pool import IDLE
from plait.runtime.grammar.regex import parse
from plait.runtime.grammar.twins import Twins

from .naive import ALPHABET, REGULAR

HORIZON = 3
LANGUAGES = Languages(IDLE)
DERIVATIVES = Derivatives(LANGUAGES, LANGUAGES.sets.all)
TWINS = Twins(LANGUAGES, DERIVATIVES)


def _repeated(pair: tuple[Expr, tuple[int, int | None]]) -> Expr:
    item, (low, high) = pair
    return Repeat(item, low, None if high is None else low + high)


COUNTS = st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(0, 14)))
COUNTED: st.SearchStrategy[Expr] = st.recursive(
    st.sampled_from([Chars(((97, 97),)), Chars(((97, 98),)), Chars(((0, 0x10FFFF),))]),
    lambda inner: st.one_of(
        st.tuples(inner, COUNTS).map(_repeated),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Concat(tuple(parts))),
        st.lists(st.one_of(inner, REGULAR), min_size=2, max_size=3).map(
            lambda parts: Both(tuple(parts))
        ),
    ),
    max_leaves=5,
)


def leads_on(language: Language, text: str) -> bool:
    for char in text:
        row = DERIVATIVES.row(language)
        after = [to for chars, to in row if any(a <= ord(char) <= b for a, b in chars.ranges)]
        if not after:
            return False
        (language,) = after
    return DERIVATIVES.is_live(language)


@settings(derandomize=True, max_examples=400, deadline=None)
@given(COUNTED, st.integers(1, HORIZON))
def test_a_twin_allows_the_same_texts_up_to_its_horizon(expr: Expr, horizon: int) -> None:
    language = build_language(expr, LANGUAGES)
    if not DERIVATIVES.is_live(language):
        return
    twin = TWINS.get(language, horizon)
    assert TWINS.get(twin, horizon) is twin
    for length in range(horizon + 1):
        for text in map("".join, product((*ALPHABET, "z"), repeat=length)):
            assert leads_on(language, text) == leads_on(twin, text)


@pytest.mark.parametrize(
    ("pattern", "other"),
    [
        ("[a-z]{5,200}", "[a-z]{5,}"),
        ("[a-z]{50,200}x", "[a-z]{10,}x"),
        ("(?:[a-z]{1,50}-){20,30}", "(?:[a-z]+-){10,}"),
        ("a{3,20}|b{9}", "a{3,}|b{9}"),
    ],
)
def test_counters_far_from_their_ends_are_cut(pattern: str, other: str) -> None:
    twin = TWINS.get(build_language(parse(pattern), LANGUAGES), 10)
    assert twin is TWINS.get(build_language(parse(other), LANGUAGES), 10)


@pytest.mark.parametrize(
    ("pattern", "horizon", "is_cut"),
    [
        ("(?!.*foo).{0,200}", 10, True),
        ("(?!.*foo).{0,10}", 10, False),
        ("(?=.*a)(?=.*b)[a-z]{8,64}", 10, True),
        ("(?=.*a)(?=.*b)[a-z]{8,12}", 10, True),
        ("(?=.*a)(?=.*b)[a-z]{8,11}", 10, False),
        ("(?=(?:a{7})*$|b*$)[ab]{15,20}", 1, False),  # no a can come: 14, 21
        ("(?=(?:a{7})*$|b*$)[ab]{15,22}", 1, True),
    ],
)
def test_a_count_beside_another_language_keeps_its_end_where_it_matters(
    pattern: str, horizon: int, is_cut: bool
) -> None:
    language = build_language(parse(pattern), LANGUAGES)
    assert (TWINS.get(language, horizon) is not language) == is_cut


def test_a_language_with_too_many_ways_to_go_on_has_no_known_rest() -> None:
    language = build_language(parse("(?![ab]*a[ab]{9}$)[ab]*"), LANGUAGES)
    assert TWINS.rest_len(language) == UNBOUNDED
    assert TWINS.rest_len(build_language(parse("(?!.*foo).*"), LANGUAGES)) == 0
    assert TWINS.rest_len(build_language(parse("(?=.*a)(?=.*b).*"), LANGUAGES)) == 2
