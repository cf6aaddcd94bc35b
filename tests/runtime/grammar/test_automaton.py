"""The automaton's tables are only caches: dropping them changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar import automaton as automaton_module
from plait.runtime.grammar import matcher as matcher_module
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.expr import Anchor, Chars, Concat, Expr, Repeat, Union, repeat
from plait.runtime.grammar.spec import Bitmask, CompiledGrammar, GrammarMatcher, GrammarSpec
from plait.runtime.grammar.vocabulary import Vocabulary

TOKENS = [bytes((b,)) for b in range(256)] + [b"ab", b"aba", b"bb", "é🙏".encode()]
A = Chars(((97, 97),))


def compiled(pattern: str) -> CompiledGrammar:
    vocabulary = Vocabulary(TOKENS, (300,), 301)
    return GrammarCompiler(vocabulary, 10.0, 50_000).compile(GrammarSpec("regex", (pattern,)))


def masks_along(grammar: CompiledGrammar, text: bytes) -> list[Bitmask]:
    matcher = grammar.matcher()
    masks: list[Bitmask] = []
    for byte in text:
        masks.append(np.zeros(10, np.int32))
        matcher.fill_bitmask(masks[-1])
        assert matcher.accept(byte)
    return masks


def masks_at(matcher: GrammarMatcher, num_tokens: int) -> None:
    for _ in range(num_tokens):
        matcher.fill_bitmask(np.zeros(10, np.int32))
        assert matcher.accept(97)


@pytest.mark.parametrize("name", ["MAX_STATES", "MAX_KEPT"])
def test_dropping_the_tables_changes_no_mask(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern, text = r"(?:[ab]*a[ab]{6}é?){1,9}", b"abbabababbabbbbab"
    whole = masks_along(compiled(pattern), text)
    monkeypatch.setattr(automaton_module, name, 5)
    assert np.array_equal(whole, masks_along(compiled(pattern), text))


def test_a_matcher_outlives_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = compiled("(?:ab|ba)+é")
    matcher = grammar.matcher()
    assert matcher.accept(97)
    monkeypatch.setattr(automaton_module, "MAX_STATES", 0)
    assert matcher.accept(98)
    assert matcher.forced() == b""
    assert all(map(matcher.accept, "é".encode()))
    assert matcher.is_finished


def test_a_step_that_takes_too_long_is_an_error_that_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matcher = compiled("[ab]{1,50}é").matcher()
    monkeypatch.setattr(matcher_module, "STEP_TIMEOUT_S", -1.0)
    with pytest.raises(RequestError, match="takes more than") as caught:
        masks_at(matcher, 50)
    assert caught.value.code == "grammar_budget"
    monkeypatch.undo()
    assert matcher.accept(98)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (repeat(A, 0, 0), Concat()),
        (repeat(A, 1, 1), A),
        (repeat(A, 2, 5), Repeat(A, 2, 5)),
        (repeat(repeat(A, 0, 50), 0, 50), Repeat(A, 0, 2500)),
        (repeat(repeat(A, 1, 3), 2, 4), Repeat(A, 2, 12)),
        (repeat(repeat(A, 1, None), 0, 4), Repeat(A, 0, None)),
        (repeat(repeat(A, 2, 3), 0, 4), Repeat(Repeat(A, 2, 3), 0, 4)),
        (repeat(Anchor("end"), 5, 10**9), Anchor("end")),
        (repeat(Concat(), 0, None), Repeat(Concat(), 0, 1)),
        (repeat(Union((Concat(), Anchor("begin"))), 7, None), Union((Concat(), Anchor("begin")))),
    ],
)
def test_repeats_unroll_as_little_as_may_be(given: Expr, expected: Expr) -> None:
    assert given == expected
