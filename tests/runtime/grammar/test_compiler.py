"""Compilation: budgets, caching of results and failures."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable

import numpy as np
import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar import compiler as compiler_module
from plait.runtime.grammar import matcher as matcher_module
from plait.runtime.grammar.budget import Budget
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.pool import IDLE, Pool
from plait.runtime.grammar.spec import GrammarSpec

from .tokens import BYTES, VOCABULARY, allowed, bytes_along, ids, stepped


def new_compiler(timeout_s: float = 10.0, max_states: int = 50_000) -> GrammarCompiler:
    return GrammarCompiler(BYTES, timeout_s, max_states)


def regex(pattern: str) -> GrammarSpec:
    return GrammarSpec("regex", (pattern,))


WORDS = ["".join(random.Random(i).choices("abcdefghijklmnop", k=3 + i % 9)) for i in range(2000)]
LARGE = {
    "ambiguous": "[ab]*a[ab]{13}",
    "more ambiguous": "[ab]*a[ab]{18}",
    "long repeat": "[a-z]{1,129}",
    "two ways": "(a|aa)*b",
    "word characters": r"\w{0,500}\W",
    "any": ".{0,20000}",
    "stars": "((((((a*)*)*)*)*)*)*b",
    "counters": "((a{0,50}){0,50}){0,50}",
    "nested counters": "([a-z]{1,200}x?){1,200}",
    "many": "x{6000}",
    "words": "|".join(f"word{i * 7919 % 1000}x" for i in range(1000)),
    "enum": "|".join(WORDS),
    "case": "(?i)" + "|".join([*WORDS[:500], "straße", "ΩΜΕΓΑ", "[à-ü]{3,40}"]),
    "password": r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?=.*[!@#$%]).{8,64}",
    "four letters": "(?=.*a)(?=.*b)(?=.*c)(?=.*d)[a-z]{8,64}",
    "without words": "(?!.*(foo|bar)).{0,200}",
    "long text": "ab" * 3000,
    "long loop": "(?:" + "ab" * 1500 + ")*",
    "common beginnings": "|".join("x" * i for i in range(1, 600)),
    "two empty ways": "(?!.*b$)(?:(?m:^)|[^a]{0,2}){0,20}[ab]{2,30}",
    "ideographs": "|".join(chr(0x4E00 + i) + chr(0x4E00 + i * 7 % 2000) for i in range(900)),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_looking_patterns_compile_within_budget(name: str) -> None:
    gc.collect()  # a pass over what other tests left must not count as this one's time
    grammar = GrammarCompiler(VOCABULARY, 2.0, 50_000).compile(regex(LARGE[name]))
    rng = random.Random(name)
    for _ in range(2):
        matcher = grammar.matcher()
        for _ in range(15):
            if matcher.is_finished:
                break
            choices = allowed(matcher)
            assert choices, "a mask led into a dead end"
            assert matcher.accept(rng.choice(choices))
        if not matcher.is_finished:
            assert allowed(matcher) == stepped(matcher)
    assert grammar.size_bytes < 100 << 20


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        ("a" * 5001, "the constraint needs more than 5000 states"),
        ("(" * 5000 + ")" * 5000, "the regex of 10000 characters is nested too deeply"),
        ("(?:" * 5000 + "a" + ")*" * 5000, "nested too deeply"),
        (r"(?:(?=a?)a?){100000}", "too"),
        ("(?=[ab]*a[ab]{14}$)(?=[ab]*b[ab]{13}$)(?=[ab]*aa[ab]{9}$)[ab]{30,40}c", "more than"),
    ],
)
def test_what_is_too_large_is_refused_by_name(pattern: str, construct: str) -> None:
    compiler = new_compiler(max_states=5000)
    with pytest.raises(RequestError, match="grammar too large") as caught:
        compiler.compile(regex(pattern))
    assert caught.value.code == "grammar_budget"
    assert construct in str(caught.value)
    assert compiler.compile(regex("a*b")).matcher().accept(ord("a"))  # the pool is as before


def test_the_time_limit_is_kept_and_named() -> None:
    with pytest.raises(RequestError, match="takes more than 0 s") as caught:
        new_compiler(timeout_s=0.0).compile(regex("a{1000}"))
    assert caught.value.code == "grammar_budget"


def test_a_budget_counts_states_over_all_constructs() -> None:
    budget = Budget(10.0, 5)
    budget.spend(5, "the first")
    with pytest.raises(RequestError, match="the second needs more than 5 states"):
        budget.spend(1, "the second")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (GrammarSpec("choices", ()), "list is empty"),
        (GrammarSpec("choices", ("a", 1)), r"choices\[1\] is 1"),  # type: ignore[arg-type]
        (GrammarSpec("choices", ("\ud800",)), r"choices\[0\].*surrogate"),
        (GrammarSpec("regex", ()), "regex must be one text"),
        (GrammarSpec("regex", (3,)), "regex must be one text"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_constraint_names_field_and_reason(spec: GrammarSpec, reason: str) -> None:
    with pytest.raises(RequestError, match=reason) as caught:
        new_compiler().compile(spec)
    assert caught.value.code == "bad_grammar"


def test_a_huge_source_is_refused_before_it_is_read() -> None:
    with pytest.raises(RequestError, match="longer than"):
        new_compiler().compile(regex("a" * 1_000_001))


def test_equal_constraints_are_compiled_once() -> None:
    compiler = new_compiler()
    first = compiler.compile(regex("a+"))
    assert compiler.compile(regex("a+")) is first
    assert compiler.compile(GrammarSpec("choices", ("a+",))) is not first


def test_failures_are_kept_and_raised_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = new_compiler()
    errors: list[RequestError] = []
    for _ in range(2):
        with pytest.raises(RequestError, match="missing") as caught:
            compiler.compile(regex("("))
        errors.append(caught.value)
        monkeypatch.setattr(compiler_module, "build", None)  # a second try would fail
    assert errors[0] is not errors[1]


def test_the_oldest_grammars_are_dropped_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiler_module, "CACHE_ENTRIES", 2)
    compiler = new_compiler()
    kept = compiler.compile(regex("a"))
    compiler.compile(regex("b"))
    assert compiler.compile(regex("a")) is kept
    compiler.compile(regex("c"))
    assert compiler.compile(regex("a")) is kept


def test_a_step_that_takes_too_long_is_an_error_that_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matcher = new_compiler().compile(regex("(?=[ab]*c)[a-c]{1,50}é{3}")).matcher()
    assert matcher.accept(ord("a"))
    monkeypatch.setattr(matcher_module, "STEP_TIMEOUT_S", -1.0)
    row = np.full(BYTES.mask_len, 7, np.int32)
    steps: list[Callable[[], object]] = [
        lambda: matcher.fill_bitmask(row),
        lambda: matcher.accept(ord("c")),
    ]
    for step in steps:
        with pytest.raises(RequestError, match="takes more than") as caught:
            step()
        assert caught.value.code == "grammar_budget"
    monkeypatch.undo()
    assert row.tolist() == [7] * BYTES.mask_len
    matcher.fill_bitmask(row)
    assert ids(row) == [*b"abc"]
    assert all(map(matcher.accept, "cé".encode()))
    monkeypatch.setattr(matcher_module, "STEP_TIMEOUT_S", -1.0)
    with pytest.raises(RequestError, match="takes more than"):
        matcher.forced()
    monkeypatch.undo()
    assert matcher.forced() == "éé".encode()


def test_a_grammar_goes_on_after_its_pool_was_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = new_compiler()
    old = compiler.compile(regex("(?:ab|ba)+é"))
    matcher = old.matcher()
    assert matcher.accept(97)
    monkeypatch.setattr(compiler_module, "POOL_SIZE", 0)
    new = compiler.compile(regex("(?:ab|ba)+é"))
    assert new is not old
    assert matcher.accept(98)
    assert all(map(matcher.accept, "é".encode()))
    assert matcher.is_finished
    assert bytes_along(new.matcher(), 6) == bytes_along(old.matcher(), 6)


def test_a_pool_that_grows_by_what_is_followed_is_replaced_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiler = new_compiler()
    first = compiler.compile(regex("[ab]{1,4000}"))
    assert compiler.compile(regex("[ab]{1,4000}")) is first
    monkeypatch.setattr(compiler_module, "POOL_SIZE", compiler._pool.size + 100)
    bytes_along(first.matcher(), 300)
    assert compiler.compile(regex("[ab]{1,4000}")) is not first
    assert compiler._pool.size < 100


def test_what_is_followed_again_makes_the_pool_no_larger() -> None:
    compiler = GrammarCompiler(VOCABULARY, 10.0, 50_000)
    grammar = compiler.compile(regex(r"(?=.*a)(?:[ab0]{1,9}é?){1,20}"))
    sizes: list[int] = []
    for _ in range(3):
        matcher, rng = grammar.matcher(), random.Random(3)
        for _ in range(12):
            texts = [i for i in allowed(matcher) if i < 700]
            if texts:
                matcher.accept(rng.choice(texts))
        sizes.append(compiler._pool.size)
    assert sizes[1] == sizes[2] == sizes[0]


def test_an_idle_budget_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "thread_time", lambda: 1e9)  # a thread that ran for long
    IDLE.check_time("nothing")
    with Pool(BYTES).using(IDLE):
        pass


def test_deep_recursion_in_a_step_is_a_budget_error() -> None:
    pool = Pool(BYTES)

    def deep(level: int) -> int:
        return deep(level + 1) + 1

    with pytest.raises(RequestError, match="nested too deeply"), pool.using(IDLE):
        deep(0)
    assert pool.languages.budget is pool.pushdown.budget is IDLE


def test_a_stop_string_may_follow_a_whole_text_and_ends_it() -> None:
    spec = GrammarSpec("regex", ("[a-z]+",), stops=('"', "\n\n"))
    matcher = GrammarCompiler(BYTES, 10.0, 50_000).compile(spec).matcher()
    assert not matcher.accept(ord('"'))  # nothing is whole yet
    assert matcher.accept(ord("a"))
    other = matcher.fork()
    assert matcher.accept(ord('"'))
    assert matcher.is_finished
    assert other.accept(ord("\n"))
    assert not other.is_accepting
    assert other.accept(ord("\n"))
    assert other.is_finished
