"""Threads that compile and follow grammars of one pool at once."""

from __future__ import annotations

import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.spec import GrammarSpec

from .tokens import BYTES, bytes_along


def new_compiler(timeout_s: float = 10.0, max_states: int = 50_000) -> GrammarCompiler:
    return GrammarCompiler(BYTES, timeout_s, max_states)


def regex(pattern: str) -> GrammarSpec:
    return GrammarSpec("regex", (pattern,))


def test_threads_share_compiler_and_grammar() -> None:
    compiler = new_compiler()
    barrier = threading.Barrier(8)

    def follow(number: int) -> bytes:
        barrier.wait()
        grammar = compiler.compile(regex(r"(?:[a-c]{1,5}\d?){1,20}"))
        return bytes_along(grammar.matcher(), 30)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(follow, range(8)))) == 1


def test_many_threads_compile_and_follow_different_grammars_at_once() -> None:
    patterns = [
        *[rf"(?:[a-c]{{1,{n}}}\d?){{1,20}}" for n in range(2, 9)],
        *[rf"(?!.*ab)(?:\w{{1,{n}}} ?){{2,30}}" for n in range(2, 9)],
        *[rf"(?:(?<!a)[ab0]{{1,{n}}}-){{1,9}}" for n in range(2, 9)],
    ]
    expected = {p: bytes_along(new_compiler().compile(regex(p)).matcher(), 20) for p in patterns}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    compiler = new_compiler()
    barrier = threading.Barrier(6)

    def follow(number: int) -> dict[str, bytes]:
        barrier.wait()
        order = random.Random(number).sample(patterns, len(patterns))
        return {p: bytes_along(compiler.compile(regex(p)).matcher(), 20) for p in order}

    try:
        with ThreadPoolExecutor(6) as pool:
            assert all(found == expected for found in pool.map(follow, range(6)))
    finally:
        sys.setswitchinterval(interval)


def test_a_step_need_not_wait_for_the_end_of_a_compilation() -> None:
    compiler = GrammarCompiler(BYTES, timeout_s=1.0, max_states=10**9)
    matcher = compiler.compile(regex("[ab]{1,5000}(?:é[ab]{1,70}){1,9}")).matcher()
    slow = "(?=[ab]*a[ab]{14}$)(?=[ab]*b[ab]{13}$)(?=[ab]*aa[ab]{9}$)[ab]{30,40}c"
    with ThreadPoolExecutor(1) as pool:
        compiling = pool.submit(compiler.compile, regex(slow))
        num_steps = 0
        while not compiling.done() and num_steps < 20:
            bytes_along(matcher, 1)
            num_steps += 1
        assert num_steps == 20
        assert not compiling.done()
        with pytest.raises(RequestError, match="takes more than 1 s"):
            compiling.result()
