"""Languages mean what their expressions say, and equal ones become one object."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.errors import RequestError
from plait.runtime.grammar.budget import Budget
from plait.runtime.grammar.build import build_language
from plait.runtime.grammar.derive import Derivatives
from plait.runtime.grammar.expr import ANY, Anchor, Both, Chars, Concat, Expr, Look, Not, Repeat
from plait.runtime.grammar.language import UNBOUNDED, Language, is_nullable
from plait.runtime.grammar.languages import Languages
from plait.runtime.grammar.pool import IDLE

from .naive import ALPHABET, PLACED, REGULAR, TEXTS, fits

LANGUAGES = Languages(IDLE)
DERIVATIVES = Derivatives(LANGUAGES, LANGUAGES.sets.all)
A = LANGUAGES.word("a")
B = LANGUAGES.word("b")


def step(language: Language, char: str) -> Language:
    """Give what follows `char`; nothing if it may not come."""
    row = DERIVATIVES.row(language)
    found = [to for chars, to in row if any(a <= ord(char) <= b for a, b in chars.ranges)]
    assert len(found) <= 1, "the sets of a row are apart"
    return found[0] if found else LANGUAGES.nothing


def accepts(language: Language, text: str) -> bool:
    for char in text:
        language = step(language, char)
    return is_nullable(language)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(REGULAR, st.lists(TEXTS, min_size=1, max_size=8))
def test_a_language_holds_what_its_expression_matches(expr: Expr, texts: list[str]) -> None:
    language = build_language(expr, LANGUAGES)
    for text in texts:
        assert accepts(language, text) == fits(expr, text)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(PLACED, st.lists(TEXTS, min_size=1, max_size=8))
def test_looks_and_anchors_see_the_text_around(expr: Expr, texts: list[str]) -> None:
    language = build_language(expr, LANGUAGES)
    for text in texts:
        assert accepts(language, text) == fits(expr, text)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(PLACED, st.lists(TEXTS, min_size=1, max_size=8))
def test_what_is_live_can_end_and_what_is_dead_cannot(expr: Expr, texts: list[str]) -> None:
    language = build_language(expr, LANGUAGES)
    for text in texts:
        place = language
        for char in text:
            is_live = DERIVATIVES.is_live(place)
            place = step(place, char)
            assert is_live or not DERIVATIVES.is_live(place)
        assert DERIVATIVES.is_live(place) == any_end(place)


def any_end(language: Language) -> bool:
    """Search breadth first for an end, over letters that stand for all there are."""
    seen, pending = {language}, [language]
    while pending:
        place = pending.pop()
        if is_nullable(place):
            return True
        after = {step(place, char) for char in (*ALPHABET, "z")}
        pending.extend(after - seen)
        seen |= after
    return False


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda m: m.repeat(m.repeat(A, 0, 50), 0, 50), lambda m: m.repeat(A, 0, 2500)),
        (lambda m: m.repeat(m.repeat(A, 1, 3), 2, 4), lambda m: m.repeat(A, 2, 12)),
        (lambda m: m.repeat(m.repeat(A, 1, None), 0, 4), lambda m: m.repeat(A, 0, None)),
        (lambda m: m.repeat(A, 0, 0), lambda m: m.empty),
        (lambda m: m.repeat(A, 1, 1), lambda m: A),
        (lambda m: m.repeat(m.empty, 3, None), lambda m: m.empty),
        (lambda m: m.repeat(m.nothing, 0, 3), lambda m: m.empty),
        (lambda m: m.repeat(m.nothing, 1, 3), lambda m: m.nothing),
        (lambda m: m.concat(A, m.nothing), lambda m: m.nothing),
        (lambda m: m.concat(m.concat(A, B), A), lambda m: m.word("aba")),
        (lambda m: m.concat(m.repeat(A, 1, 2), m.repeat(A, 3, 4)), lambda m: m.repeat(A, 4, 6)),
        (lambda m: m.concat(m.anything, m.anything), lambda m: m.anything),
        (lambda m: m.union((A, m.nothing, A)), lambda m: A),
        (lambda m: m.union((A, m.union((B, A)))), lambda m: m.union((B, A))),
        (
            lambda m: m.union((A, B)),
            lambda m: m.chars(m.sets.get(((97, 98),))),
        ),
        (lambda m: m.union((m.repeat(A, 0, 3), m.repeat(A, 2, 9))), lambda m: m.repeat(A, 0, 9)),
        (lambda m: m.union((A, m.anything)), lambda m: m.anything),
        (lambda m: m.union(()), lambda m: m.nothing),
        (lambda m: m.both((A, m.anything)), lambda m: A),
        (lambda m: m.both((A, B)), lambda m: m.nothing),
        (lambda m: m.both((A, m.negate(A))), lambda m: m.nothing),
        (lambda m: m.both(()), lambda m: m.anything),
        (
            lambda m: m.both((m.repeat(m.any, 1, 5), m.repeat(m.any, 3, None))),
            lambda m: m.repeat(m.any, 3, 5),
        ),
        (lambda m: m.both((m.repeat(m.any, 4, 5), m.repeat(m.any, 0, 3))), lambda m: m.nothing),
        (lambda m: m.negate(m.negate(A)), lambda m: A),
        (lambda m: m.negate(m.nothing), lambda m: m.anything),
        (lambda m: m.both((m.word("ab"), m.empty)), lambda m: m.nothing),
    ],
)
def test_simple_identities_hold_by_identity(
    found: Callable[[Languages], Language], expected: Callable[[Languages], Language]
) -> None:
    assert found(LANGUAGES) is expected(LANGUAGES)


def test_repeats_of_what_counts_with_gaps_stay_apart() -> None:
    pairs = LANGUAGES.repeat(LANGUAGES.repeat(A, 2, 3), 0, 4)
    assert [n for n in range(14) if accepts(pairs, "a" * n)] == [0, *range(2, 13)]
    lone = LANGUAGES.repeat(LANGUAGES.repeat(A, 5, 5), 0, 2)
    assert [n for n in range(14) if accepts(lone, "a" * n)] == [0, 5, 10]


@settings(derandomize=True, max_examples=150, deadline=None)
@given(REGULAR, TEXTS)
def test_no_shortest_rest_is_longer_than_the_weight(expr: Expr, text: str) -> None:
    language = build_language(expr, LANGUAGES)
    for char in text:
        after = step(language, char)
        if not DERIVATIVES.is_live(after):
            break
        if language.weight < UNBOUNDED and after.weight < UNBOUNDED:
            assert shortest(after) <= language.weight
        language = after


def shortest(language: Language) -> int:
    places, length = {language}, 0
    while not any(map(is_nullable, places)):
        places = {step(place, char) for place in places for char in (*ALPHABET, "z")}
        length += 1
    return length


@pytest.mark.parametrize(
    "expr",
    [
        Concat((Chars(((97, 97),)),) * 5000),
        Repeat(Concat((Chars(((97, 97),)),) * 3000), 0, None),
        Concat((Repeat(Chars(((97, 97),)), 0, 1), Repeat(Chars(((98, 98),)), 0, 1)) * 200),
    ],
)
def test_long_chains_need_no_deep_recursion(expr: Expr) -> None:
    languages = Languages(IDLE)
    derivatives = Derivatives(languages, languages.sets.all)
    place = build_language(expr, languages)
    for _ in range(150):
        ((_, place), *_) = derivatives.row(place)
        assert derivatives.is_live(place)


@pytest.mark.parametrize(
    "expr",
    [
        Concat((Repeat(Concat((Look(Chars(((97, 97),)), True, False), ANY)), 2, 9), ANY)),
        Both((Repeat(ANY, 2, 40), Not(Concat((ANY, Chars(((97, 98),)), Repeat(ANY, 0, None)))))),
        Concat((Repeat(Concat((Anchor("line_begin"), ANY)), 0, 5), Look(ANY, False, True))),
    ],
)
def test_what_runs_out_of_budget_half_way_leaves_nothing_half_made(expr: Expr) -> None:
    texts = ["", "a", "aa", "ab", "aab", "\n\n", "bb\n", "aaaa", "b\nab"]
    languages = Languages(IDLE)
    derivatives = Derivatives(languages, languages.sets.all)
    for num_states in range(1, 400, 3):
        languages.budget = Budget(60.0, num_states)
        try:
            place = build_language(expr, languages)
            for text in texts:
                follow = place
                for char in text:
                    row = derivatives.row(follow)
                    assert all(map(derivatives.is_live, (to for _, to in row))) is not None
                    after = [t for s, t in row if any(a <= ord(char) <= b for a, b in s.ranges)]
                    follow = after[0] if after else languages.nothing
                assert is_nullable(follow) == fits(expr, text)
        except RequestError:
            continue
        return
    pytest.fail("the budget was never enough")
