"""Lark grammars that are refused, and why."""

from __future__ import annotations

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.spec import CompiledGrammar, GrammarSpec
from plait.runtime.grammar.vocabulary import Vocabulary

BYTES = Vocabulary([bytes((b,)) for b in range(256)], (256,), 257)
COMPILER = GrammarCompiler(BYTES, 30.0, 1_000_000)


def compiled(source: str) -> CompiledGrammar:
    return COMPILER.compile(GrammarSpec("lark", (source,)))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ('start: "a', "lark: .*line 1"),
        ('begin: "a"', "start"),
        ("start: thing", "thing"),
        ('start: a "x" | b "x"\na: "1"\nb: "1"', r"must be LALR\(1\).*Reduce/Reduce"),
        ('start: e\ne: e "+" e | "1"', r"must be LALR\(1\).*Shift/Reduce"),
        ('start.2: a | b\na.2: "1"\nb: "1"', r"must be LALR\(1\)"),
        ('start: "x" | "y" loop\nloop: "z" loop', "rule loop: no finite text"),
        ("%declare INDENT\nstart: INDENT", "INDENT"),
        ("start: A\nA: /a*/", "zero-width"),
        (r"start: A+" + "\n" + r"A: /\ba/", r"terminal A: a lookbehind or \\b that depends"),
        ("start: A+\nA: /^a/", "terminal A: an anchor that depends"),
        ("start: A\nA: /a(?=b)/", "terminal A: a lookahead that asks for what follows"),
        (r"start: A" + "\n" + r"A: /(a)\1/", "terminal A: cannot refer to an open group"),
        ("start: A\nA: /((a|b*?)*c)/", "prefers to be"),
        ("start: A B\nA: /(?P<x>a)/\nB: /(?P<x>b)/", "terminal B: a named group"),
        ("start: A\nA: /(?i)a/", "flags"),
        ("%import .secret.TOKEN\nstart: TOKEN", r"line 1: %import \.secret"),
        ("%import secret.TOKEN\nstart: TOKEN", "%import secret"),
        ("start: A\nA: /[^\\s\\S]/", "terminal A: no text matches"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(source: str, reason: str) -> None:
    with pytest.raises(RequestError, match=f"(?s){reason}") as caught:
        compiled(source)
    assert caught.value.code == "bad_grammar"
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("nested", ["(" * 3000 + '"a"' + ")" * 3000, "[" * 500 + '"a"' + "]" * 500])
def test_deep_nesting_ends_in_a_verdict(nested: str) -> None:
    with pytest.raises(RequestError) as caught:
        compiled(f"start: {nested}")
    assert caught.value.code == "grammar_budget"
