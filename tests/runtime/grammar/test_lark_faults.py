"""Lark grammars that are refused, and why."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.spec import CompiledGrammar, GrammarSpec
from plait.runtime.grammar.vocabulary import Vocabulary

BYTES = Vocabulary([bytes((b,)) for b in range(256)], (256,), 257)
COMPILER = GrammarCompiler(BYTES, 30.0, 1_000_000)


PART = (("P", GrammarSpec("regex", ("q",))),)


def compiled(source: str) -> CompiledGrammar:
    return COMPILER.compile(GrammarSpec("lark", (source,)))


def _doubling(line: str, start: str, end: str) -> str:
    return "\n".join([f"start: {start}", *(line.format(n, n + 1) for n in range(30)), end])


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
        ('start: "a" WS "b"\nWS: / +/\n%ignore WS', "rule start: no text .* what %ignore takes"),
        ("start: A\nA: /a*/", "zero-width"),
        (r"start: A+" + "\n" + r"A: /\ba/", r"terminal A: a lookbehind or \\b that depends"),
        ("start: A+\nA: /^a/", "terminal A: an anchor that depends"),
        ("start: A\nA: /a(?=b)/", "terminal A: a lookahead that asks for what follows"),
        (r"start: A" + "\n" + r"A: /(a)\1/", "terminal A: .*a backreference"),
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


@pytest.mark.parametrize(
    "source",
    [
        "start: (B)? A\nA.2: /(?!ab)a|b/\nB: /[a-c]/\n%ignore /[ c]+/",
        "start: (A | B | C)+\nA.2: /(?!acd)ac/\nB: /a/\nC: /[cd]/",
        "start: (A | B | C)+\nA.2: /(?!abx)a/\nB: /ab/\nC: /x/",
        "start: (A | B)+\nA.2: /if(?![a-z0-9])/\nB: /[a-z]+|[0-9]+/",
        "start: (A | B)+\nA.2: /a$/\nB: /[ab]/",
        "start: (A | B | C)+\nA.2: /let\\b/\nB: /[a-z]+/\nC: /[0-9]+/",
        "start: A | B P\nA.2: /let\\b/\nB: /[a-z]+/\n%declare P",
    ],
)
def test_a_look_that_leaves_a_text_to_another_terminal_is_refused(source: str) -> None:
    with pytest.raises(RequestError, match=r"terminal A: a look that fails on .* where B takes"):
        COMPILER.compile(GrammarSpec("lark", (source,), parts=PART if "P" in source else ()))


@pytest.mark.parametrize(
    "source",
    [
        "start: (A | B)+\nA.2: /if(?![a-z])/\nB: /[a-z]+/\n%ignore / +/",
        'start: (A | "/" | B)+\nA: /\\/\\/.*$/m\nB: /[a-z]+/\n%ignore /\\s+/',
        "start: (A | B)+\nA.2: /[0-9]+(?![0-9.])/\nB: /[0-9]+\\.[0-9]+/\n%ignore / +/",
        "start: (A | B)+\nA: /[a-z](?!x)/\nB: /[0-9]/",
        "start: (A | B)+\nA.2: /let\\b/\nB: /[a-z_][a-z0-9_]*/i\n%ignore / +/",
    ],
)
def test_a_look_is_taken_where_no_other_terminal_takes_over(source: str) -> None:
    compiled(source)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('start: l{"a"}\nl{x}: "b" | l{l{x}}', "template l"),
        ('start: a{"x"}\na{x}: "1" x | b{x}\nb{x}: "2" x | a{b{x}}', "template [ab]"),
        ('start: a{a,"z"}\na{f,x}: "r" | f{f, b{x}}\nb{x}: x "c"', "template [ab]"),
        (
            _doubling("t{0}{{x}}: t{1}{{p{{x,x}}}}", 't0{"q"}', 't30{x}: x\np{x,y}: x "," y'),
            "template p",
        ),
        (_doubling("A{0}: A{1} A{1}", "A0", 'A30: "ab"'), "terminal A"),
        ("start: " + '["a"] "b"? ' * 20, "rule start"),
        ("start: " + '("a" | "b") ' * 20, "rule start"),
        ('start: ("a" | "b")~40', "rule start"),
        ("start: a\na: " + "b? " * 9 + '"c" ' * 2000 + '\nb: "x"', "rule a"),
    ],
)
def test_what_lark_would_write_without_end_is_refused_before(source: str, name: str) -> None:
    start_s = time.thread_time()
    with pytest.raises(RequestError, match=f"grammar too large: lark: {name}") as caught:
        compiled(source)
    assert caught.value.code == "grammar_budget"
    assert time.thread_time() - start_s < 2


@pytest.mark.parametrize(
    "source",
    [
        'start: l{"a"}\nl{x}: x | x l{x}',
        'start: p{p{"a"}}\np{x}: x "b"',
        'start: "a"~9999',
    ],
)
def test_what_lark_writes_in_little_time_is_taken(source: str) -> None:
    compiled(source)


@pytest.mark.parametrize("blank", ["", " ", "\t", "\x0b", "\x0c", "\r", "\u2003", "\n\x1c "])
@pytest.mark.parametrize("path", [".secret.X", "secret.X", "secret (X, Y)", "common.secret.X"])
def test_no_import_reads_a_file(
    blank: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "common").mkdir()
    for name in ("secret.lark", "common/secret.lark"):
        (tmp_path / name).write_text('X: "x"\nY: "y"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "main.py"))
    with pytest.raises(RequestError, match="only common, lark, python, unicode can be imported"):
        compiled(f"start: X\n{blank}%import {path}\n")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ('start: "a" p "b"\n%declare p', "%declare p: .* in capitals"),
        ('start: Q P\nQ: P "x"\n%declare P', "terminal Q: P is declared: .* in rules only"),
        ('start: P "x"\n%declare P\n%ignore P', "%ignore: P is declared"),
        ('start: P\n%declare P\n%ignore P "x"', "%ignore: P is declared"),
        ('start: P\n%declare P\nP: "x"', "line 3: P is defined here and in parts; rename"),
        ('start: P\nP.2: "x"\n\x0b%declare P', "line 2: P is defined here and in parts; rename"),
        ("start: P X\n%declare P\n%import lark.rule -> X", "rule -> X: .* in small letters"),
        ("start: P x\n%declare P\n%import common.INT -> x", "INT -> x: .* in capitals"),
        ("start: A\nA: B\nB: A A", "terminal [AB]: it is part of itself"),
    ],
)
def test_a_declared_name_in_a_wrong_place_is_refused_by_name(source: str, reason: str) -> None:
    parts = tuple((name, GrammarSpec("regex", ("q",))) for name in ("P", "p"))
    with pytest.raises(RequestError, match=f"lark: .*{reason}") as caught:
        COMPILER.compile(GrammarSpec("lark", (source,), parts=parts))
    assert caught.value.code == "bad_grammar"


@pytest.mark.parametrize("nested", ["(" * 3000 + '"a"' + ")" * 3000, "[" * 500 + '"a"' + "]" * 500])
def test_deep_nesting_ends_in_a_verdict(nested: str) -> None:
    with pytest.raises(RequestError) as caught:
        compiled(f"start: {nested}")
    assert caught.value.code == "grammar_budget"
