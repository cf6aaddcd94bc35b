"""A grammar behind a prefix: what stands at the end of a prompt that is spelled anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.spec import GrammarKind, GrammarSpec

from .tokens import VOCABULARY, allowed, stepped

SPECS: list[tuple[GrammarKind, tuple[str, ...], str]] = [
    ("regex", ("[a-c]{2,3}",), "abc"),
    ("regex", (r"\bx?",), "x"),
    ("regex", ("a*",), "aa"),
    ("choices", ("yes", "no"), "no"),
    ("json_schema", ('{"type":"integer"}',), "12"),
    ("lark", ('start: "a" /b+/',), "abb"),
    ("ebnf", ('s ::= "(" s ")" | "x"',), "((x))"),
]


def new_compiler() -> GrammarCompiler:
    return GrammarCompiler(VOCABULARY, 10.0, 50_000)


@pytest.mark.parametrize(("kind", "source", "text"), SPECS)
@pytest.mark.parametrize("prefix", [b" ", b":", "né".encode(), b"\x9f\x99", b"aa"])
def test_each_text_begins_with_the_prefix(
    kind: GrammarKind, source: tuple[str, ...], text: str, prefix: bytes
) -> None:
    compiler = new_compiler()
    plain = GrammarSpec(kind, source)
    after = compiler.compile(plain).matcher()
    matcher = compiler.compile(replace(plain, prefix=prefix)).matcher()
    for byte in prefix:
        assert not matcher.is_accepting
        assert allowed(matcher) == stepped(matcher)
        assert matcher.accept(byte)
    assert allowed(matcher) == allowed(after)
    assert all(map(matcher.accept, text.encode()))
    assert matcher.is_accepting


def test_the_grammar_itself_is_compiled_once() -> None:
    compiler = new_compiler()
    plain = GrammarSpec("lark", ('start: "a" /b+/',))
    first = compiler.compile(replace(plain, prefix=b" "))
    second = compiler.compile(replace(plain, prefix=b":"))
    alone = compiler.compile(plain)
    assert first.pool is second.pool is alone.pool
    assert first.size_bytes < alone.size_bytes
    assert (first.prefix, second.prefix, alone.prefix) == (b" ", b":", b"")
    assert compiler.compile(replace(plain, prefix=b" ")) is first


def test_a_stop_string_may_follow() -> None:
    spec = GrammarSpec("regex", ("[ab]",), stops=("\n",), prefix=b" ")
    matcher = new_compiler().compile(spec).matcher()
    assert all(map(matcher.accept, b" a\n"))
    assert matcher.is_finished


def test_the_message_is_that_of_the_grammar() -> None:
    compiler = new_compiler()
    for _ in range(2):
        with pytest.raises(RequestError, match="unterminated") as error:
            compiler.compile(GrammarSpec("regex", ("(",), prefix=b" "))
        assert error.value.code == "bad_grammar"
