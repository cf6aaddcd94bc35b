"""Masks against byte-by-byte stepping; walks, rollback, fork, forced bytes, end tokens."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.spec import GrammarKind, GrammarMatcher, GrammarSpec
from plait.runtime.grammar.vocabulary import Vocabulary

from .tokens import (
    CONTROL,
    EOS,
    SECOND_EOS,
    TOKENS,
    WIDTH,
    allowed,
    follow,
    grammar_of,
    mask,
    matcher_of,
    stepped,
    text_of,
    walk,
)

PATTERNS = [
    r"[0-9]+",
    r".*",
    r"(?s).{0,40}",
    r"[ab]{1,129}",
    r"(?:a{1,3}b){2,60}x",
    r"[ab]*a[ab]{13}",
    r"\w+( \w+)*",
    r"(?:é|🙏|ж)+x?",
    r"(?:ab|a)*b",
    r'"[^"\n]{0,50}"',
    r"\d{4}-\d{2}-\d{2}",
    r"(?:(?:a{1,4}-){1,30}x?){0,20}",
    r"[^\x00-\x7f]{1,30}",
    r"(?=.*a)(?=.*b)(?=.*\d)[ab0-9é]{4,30}",
    r"(?!.*(?:aa|ab)).{0,40}",
    r"(?:\b[ab0-9]+\b[ -]?){2,9}",
    r"(?:\w(?<!a)x?){2,30}",
    r"(?m:^[ab]{1,9}$\n?){1,4}",
    r"(?>aa|a)b|a{2,}+x",
    r"",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_mask_equals_stepping_each_token_byte_by_byte(pattern: str) -> None:
    start = matcher_of("regex", pattern)
    for seed in range(3):
        follow(start, random.Random(f"{pattern}{seed}"), 8)


def test_masks_shared_by_the_copies_of_a_repeat_are_right_at_every_place() -> None:
    matcher = matcher_of("regex", r"(?:[ab]-?){3,90}c")
    for _ in range(90):
        assert allowed(matcher) == stepped(matcher)
        assert matcher.accept(ord("a"))
    assert allowed(matcher) == stepped(matcher)
    assert set(text_of(allowed(matcher))) == set(b"-c")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_random_walks_through_the_masks_end_in_a_whole_word(pattern: str) -> None:
    start = matcher_of("regex", pattern)
    for seed in range(10):
        rng = random.Random(seed)
        text = walk(start.fork(), rng, rng.choice([0, 3, 30])).decode()
        assert re.fullmatch(pattern, text)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.text("ab0é🙏- \n", max_size=5), min_size=1, max_size=8), st.randoms())
def test_choices_allow_exactly_the_texts_of_the_list(
    choices: list[str], rng: random.Random
) -> None:
    start = matcher_of("choices", *choices)
    words = {choice.encode() for choice in choices}
    matcher = start.fork()
    prefix = b""
    while True:
        expected = [
            i for i, t in enumerate(TOKENS) if t and i != EOS and _starts(words, prefix + t)
        ]
        assert [i for i in allowed(matcher) if i not in (EOS, SECOND_EOS)] == expected
        assert matcher.is_accepting == (prefix in words) == (EOS in allowed(matcher))
        assert matcher.is_finished == (not expected)
        if not expected:
            break
        token_id = rng.choice(expected)
        assert matcher.accept(token_id)
        prefix += TOKENS[token_id] or b""
    assert prefix in words


def _starts(words: set[bytes], prefix: bytes) -> bool:
    return any(word.startswith(prefix) for word in words)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("arf"), st.integers(0, 10**6)), max_size=25))
def test_rollback_and_fork_change_nothing_else(steps: list[tuple[str, int]]) -> None:
    grammar = grammar_of("regex", r"(?:a{1,3}b|é🙏){0,9}x?")
    live: list[tuple[GrammarMatcher, list[int]]] = [(grammar.matcher(), [])]
    for action, number in steps:
        matcher, history = live[number % len(live)]
        if action == "f":
            live.append((matcher.fork(), list(history)))
        elif action == "r":
            count = number % (len(history) + 1)
            matcher.rollback(count)
            del history[len(history) - count :]
        elif choices := allowed(matcher):
            history.append(choices[number % len(choices)])
            assert matcher.accept(history[-1])
        for other, tokens in live:
            fresh = grammar.matcher()
            assert all(map(fresh.accept, tokens))
            assert np.array_equal(mask(other), mask(fresh))
            assert (other.is_accepting, other.is_finished) == (
                fresh.is_accepting,
                fresh.is_finished,
            )


def test_rolling_back_too_far_is_an_error_that_changes_nothing() -> None:
    matcher = matcher_of("regex", "ab?")
    assert matcher.accept(ord("a"))
    before = mask(matcher)
    with pytest.raises(ValueError, match="only 1 tokens"):
        matcher.rollback(2)
    assert np.array_equal(mask(matcher), before)


def test_a_refused_token_changes_nothing() -> None:
    matcher = matcher_of("regex", "ab+")
    before = mask(matcher)
    for token_id in (ord("b"), EOS, CONTROL, WIDTH, 10**6, -1):
        assert not matcher.accept(token_id)
    assert np.array_equal(mask(matcher), before)


def test_end_tokens_come_only_where_the_text_is_whole_and_end_it() -> None:
    matcher = matcher_of("regex", "ab*")
    assert not {EOS, SECOND_EOS} & set(allowed(matcher))
    assert matcher.accept(ord("a"))
    assert {EOS, SECOND_EOS} <= set(allowed(matcher))
    assert not matcher.is_finished
    assert matcher.accept(SECOND_EOS)
    assert matcher.is_finished
    assert matcher.is_accepting
    assert allowed(matcher) == []
    assert not matcher.accept(EOS)
    matcher.rollback(1)
    assert matcher.accept(ord("b"))


def test_an_end_tokens_spelling_is_not_text() -> None:
    matcher = matcher_of("regex", "</s>")
    assert EOS not in allowed(matcher)


@pytest.mark.parametrize(("kind", "source"), [("regex", ("",)), ("choices", ("",))])
def test_the_empty_text_ends_at_once(kind: GrammarKind, source: tuple[str, ...]) -> None:
    matcher = matcher_of(kind, *source)
    assert (matcher.is_accepting, matcher.is_finished) == (True, True)
    assert allowed(matcher) == [EOS, SECOND_EOS]


def test_forced_bytes_run_to_the_first_choice_or_possible_end() -> None:
    assert matcher_of("regex", '{"name": "[a-z]+"}').forced() == b'{"name": "'
    assert matcher_of("choices", "yes 🙏", "yes no").forced() == b"yes "
    assert matcher_of("choices", "one", "one more").forced() == b"one"
    assert matcher_of("regex", "é|è").forced() == b"\xc3"
    assert matcher_of("regex", "a*").forced() == b""
    assert matcher_of("regex", "a{6000}").forced() == b"a" * 4096
    ended = matcher_of("regex", "a")
    assert ended.accept(ord("a"))
    assert ended.forced() == b""


def test_bytes_that_no_token_spells_are_avoided() -> None:
    vocabulary = Vocabulary([b"a", b"b", b"c"], (3,), 4)
    compiler = GrammarCompiler(vocabulary, timeout_s=10.0, max_states=1000)
    matcher = compiler.compile(GrammarSpec("regex", ("a(?:é|z)|bc",))).matcher()
    row = np.zeros(1, np.int32)
    matcher.fill_bitmask(row)
    assert row.tolist() == [0b010]
    assert matcher.forced() == b"bc"
