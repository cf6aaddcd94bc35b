"""Compilation: budgets, caching of results and failures, threads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar import compiler as compiler_module
from plait.runtime.grammar.budget import Budget
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.masks import MaskCache
from plait.runtime.grammar.positions import WHOLE_TEXT
from plait.runtime.grammar.spec import GrammarSpec
from plait.runtime.grammar.vocabulary import Vocabulary

BYTES = Vocabulary([bytes((b,)) for b in range(256)], (256,), 257)


def new_compiler(timeout_s: float = 10.0, max_states: int = 50_000) -> GrammarCompiler:
    return GrammarCompiler(BYTES, timeout_s, max_states)


def regex(pattern: str) -> GrammarSpec:
    return GrammarSpec("regex", (pattern,))


@pytest.mark.parametrize(
    "pattern",
    [
        "[ab]*a[ab]{13}",
        "[ab]*a[ab]{18}",
        "[a-z]{1,129}",
        "(a|aa)*b",
        r"\w{1,300}",
        ".{0,20000}",
        "((((((a*)*)*)*)*)*)*b",
        "|".join(f"word{i * 7919 % 1000}x" for i in range(1000)),
    ],
)
def test_large_looking_patterns_compile_in_little_time_and_memory(pattern: str) -> None:
    start_s = time.thread_time()
    grammar = new_compiler().compile(regex(pattern))
    assert time.thread_time() - start_s < 2.0
    matcher = grammar.matcher()
    row = np.zeros(BYTES.mask_len, np.int32)
    for byte in b"ababaabbabababababababababaaab":
        if not matcher.accept(byte):
            break
        matcher.fill_bitmask(row)
    assert grammar.size_bytes < 100 << 20


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        ("((a{0,50}){0,50}){0,50}", "a repeat {0,125000} needs more than 5000 states"),
        ("x{6000}", "a repeat {6000,6000} needs more than 5000 states"),
        ("a" * 5001, "the regex needs more than 5000 states"),
    ],
)
def test_what_is_too_large_is_refused_by_name_in_little_time(pattern: str, construct: str) -> None:
    start_s = time.thread_time()
    with pytest.raises(RequestError, match="grammar too large") as caught:
        new_compiler(max_states=5000).compile(regex(pattern))
    assert time.thread_time() - start_s < 2.0
    assert caught.value.code == "grammar_budget"
    assert construct in str(caught.value)


def test_a_pattern_that_can_be_read_in_too_many_ways_is_refused() -> None:
    longer = [bytes((b,)) for b in range(256)] + [b"a" * 80]
    compiler = GrammarCompiler(Vocabulary(longer, (), 257), timeout_s=10.0, max_states=50_000)
    with pytest.raises(RequestError, match="more than 5000 places") as caught:
        compiler.compile(regex("(.{0,100}x?){0,100}"))
    assert caught.value.code == "grammar_budget"


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
        monkeypatch.setattr(compiler_module, "parse", None)  # a second parse would fail
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


def test_the_mask_cache_stays_under_its_bytes() -> None:
    cache = MaskCache(max_bytes=100)
    states = [WHOLE_TEXT, ((1, frozenset((2,))),), ((3, frozenset((4,))),)]
    for state in states:
        cache.put(state, np.zeros(10, np.int32))  # 40 bytes
    assert cache.size_bytes == 80
    assert cache.get(states[0]) is None
    assert cache.get(states[2]) is not None


def test_threads_share_compiler_and_grammar() -> None:
    compiler = new_compiler()
    barrier = threading.Barrier(8)

    def follow(number: int) -> bytes:
        barrier.wait()
        grammar = compiler.compile(regex(r"(?:[a-c]{1,5}\d?){1,20}"))
        matcher = grammar.matcher()
        row = np.zeros(BYTES.mask_len, np.int32)
        found = bytearray()
        for step in range(30):
            matcher.fill_bitmask(row)
            bits = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
            found.append(int(bits[(step * 7) % (len(bits) - 1)]))
            assert matcher.accept(found[-1])
        return bytes(found)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(follow, range(8)))) == 1


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
