"""Grammars inside grammars: exact as alone, refused by name where a name leads nowhere."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from lark import Lark, Token
from lark.exceptions import LarkError
from lark.lexer import ContextualLexer

from plait.runtime.errors import RequestError
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.explain import compile_plain, explain, match, samples
from plait.runtime.grammar.spec import GrammarSpec
from plait.runtime.grammar.split import splitter

from .composed import ALL, ARGS, CALL, LIST, TOOL, WRAPPED, ebnf, lark, schema
from .tokens import VOCABULARY, follow

WORD = GrammarSpec("regex", ("[a-z]+",))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "call",
            ['find({"q":""})', 'finder({"q":"é","n":3}) at 7', 'get({"q":"a"}) at 77'],
            ['find({"q":1})', 'fin({"q":""})', 'find({"q":""}) at', 'find({"q":""}) at 777'],
        ),
        (
            "list",
            ["a()", 'a ( {"q": ""} ) ', 'ab({"q":"c"},{"n":1,"q":""} )'.replace('"n":1,', "")],
            ["()", 'a({"q":""}', 'a({"q":""} {"q":""})', 'a({"q":  ""})'],
        ),
        ("sum", ["1", "1+2+3", "-(1+22)+-3"], ["", "1+", "1234", "(1"]),
        ("wrapped", ["1", "1+2; 3 ", " 1;(2)"], ["1 +2", ";", "1;"]),
        ("empty", ["", "aa", "findx", "getfinderaxx"], ["x", "find", "findaaxx"]),
    ],
)
def test_a_composed_grammar_takes_its_texts(name: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not match(ALL[name], text)] == []
    assert [text for text in bad if match(ALL[name], text)] == []


@pytest.mark.parametrize("name", ALL)
def test_masks_are_what_stepping_gives(name: str) -> None:
    grammar = GrammarCompiler(VOCABULARY, 30.0, 1_000_000).compile(ALL[name])
    rng = random.Random(name)
    for _ in range(3):
        follow(grammar.matcher(), rng, 12)


def test_what_a_part_forces_is_forced() -> None:
    spec = ebnf('root ::= "[" args "]"', args=schema(ARGS))
    assert compile_plain(spec).matcher().forced() == b'[{"q":"'
    spec = lark("start: ARGS\n%declare ARGS", ARGS=schema(ARGS))
    assert compile_plain(spec).matcher().forced() == b'{"q":"'


class PartLexer(ContextualLexer):
    """Lark's own lexer, that gives a declared terminal where a part lies."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.parts: dict[int, tuple[str, int]] = {}

    def lex(self, lexer_state: object, parser_state: object) -> Iterator[Token]:
        """Give tokens; where neither a part nor a terminal begins, fail as lark does."""
        at, state = lexer_state.line_ctr, parser_state  # type: ignore[attr-defined]
        text: str = lexer_state.text.text  # type: ignore[attr-defined]
        while at.char_pos < len(text):
            if at.char_pos in self.parts:
                name, end = self.parts[at.char_pos]
                token = Token(name, text[at.char_pos : end], at.char_pos)
                at.feed(token)
                yield token
                continue
            lexer = self.lexers[state.position]  # type: ignore[attr-defined]
            found = lexer.match(lexer_state.text, at.char_pos)  # type: ignore[attr-defined]
            if found is None:
                raise LarkError(f"no terminal at {at.char_pos}")
            value, name = found
            at.feed(value)
            if name not in lexer.ignore_types:  # type: ignore[attr-defined]
                yield Token(name, value, at.char_pos - len(value))


@pytest.mark.parametrize("spec", [LIST, WRAPPED], ids=["list", "wrapped"])
def test_lark_parses_each_sample_with_the_parts_where_they_were_found(spec: GrammarSpec) -> None:
    plugins = {"ContextualLexer": PartLexer}
    parser = Lark(spec.source[0], parser="lalr", lexer="contextual", _plugins=plugins)
    lexer = parser.parser.lexer
    assert isinstance(lexer, PartLexer)
    for text in samples(compile_plain(spec), 40, 3, 60):
        split = splitter(spec, frozenset()).split(text)
        assert split is not None
        data = text.encode()
        lexer.parts = {
            len(data[: s.start].decode()): (s.path[0], len(data[: s.end].decode()))
            for s in split.spans
            if len(s.path) == 1
        }
        parser.parse(text)


def test_ignored_text_may_stand_before_a_part_and_a_longer_terminal_wins() -> None:
    spec = lark('start: NAME PART\n%declare PART\nNAME: /[a-z]+/\n%ignore " "', PART=WORD)
    assert match(spec, "ab cd")
    assert match(spec, "ab  c ")
    assert not match(spec, "abcd")  # lark's lexer takes all of it for NAME


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ebnf('root ::= "a"', x=WORD), "ebnf: part x: no rule names it"),
        (ebnf("root ::= x y", x=WORD), "line 1, column 12: rule y is not defined, neither here"),
        (ebnf("root ::= x\nx ::= y", x=WORD), "line 2, column 1: rule x is defined here and in p"),
        (lark("start: X\nX: /a/", X=WORD), "line 2: X is defined here and in parts"),
        (lark("start: X", X=WORD), "part X: write %declare X"),
        (lark("start: x", x=WORD), "part x: it stands for a terminal, whose name is in capitals"),
        (lark('start: "a"\n%declare X', X=WORD), "part X: no rule names it"),
        (lark("start: X Y\n%declare X Y", X=WORD), "line 2: %declare Y: a terminal needs"),
        (
            lark("start: X\n%declare X", X=GrammarSpec("regex", ("a*",))),
            "lark: part X: its text may be empty",
        ),
        (ebnf("root ::= x", x=GrammarSpec("regex", ("(",))), r"part x: regex: missing"),
        (ebnf("root ::= x", x=ebnf("root ::= y", y=schema(False))), "part x: part y: schema: no v"),
        (GrammarSpec("regex", ("a",), parts=(("x", WORD),)), "regex: it names no parts"),
        (
            ebnf('root ::= x root "a" | "b"', x=ebnf('root ::= "(" root ")" | ""')),
            "part x: it may be empty where a rule could begin with itself",
        ),
        (
            ebnf("root ::= x", x=schema({"format": "iri"}, is_strict=True)),
            "part x: schema: #/format: .* strict=True refuses",
        ),
    ],
)
def test_what_leads_nowhere_is_refused_by_name(spec: GrammarSpec, message: str) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        compile_plain(spec)
    assert caught.value.code == "bad_grammar"


def test_parts_too_deep_in_each_other_are_refused() -> None:
    spec = ebnf('root ::= "a"')
    for _ in range(40):
        spec = ebnf("root ::= x", x=spec)
    with pytest.raises(RequestError, match="more than 32 grammars inside each other"):
        compile_plain(spec)


def test_explain_lists_what_is_exact_and_checked_by_part() -> None:
    value = {"properties": {"a": {"type": "array", "uniqueItems": True}}, "required": ["a"]}
    inner = ebnf('root ::= "(" v ")"', v=schema(value))
    said = explain(ebnf("root ::= name inner", name=TOOL, inner=inner))
    assert not said.refused
    assert said.exact[:2] == ("the text around the parts", "name: the whole text")
    assert "inner: v: #/required" in said.exact
    assert [place for place, _ in said.checked] == ["inner: v: #/properties/a/uniqueItems"]
    assert all(match(CALL, text) for text in explain(CALL).examples)


def test_a_composed_grammar_is_known_by_its_parts() -> None:
    compiler = GrammarCompiler(VOCABULARY, 30.0, 1_000_000)
    one = compiler.compile(ebnf("root ::= x", x=WORD))
    assert compiler.compile(ebnf("root ::= x", x=WORD)) is one
    assert compiler.compile(ebnf("root ::= x", x=TOOL)) is not one


def test_a_part_means_what_it_means_alone() -> None:
    part = GrammarSpec("regex", (r"(?i:AB)\b|^x$",))
    spec = ebnf('root ::= x "-" x', x=part)
    for text in ("ab", "AB", "x", "X", ""):
        assert match(spec, f"{text}-{text}") == bool(re.fullmatch(part.source[0], text))
