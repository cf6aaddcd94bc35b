"""Lark grammars against lark itself: the engine accepts a text exactly where lark parses it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable

import numpy as np
import pytest
from lark import Lark
from lark.exceptions import LarkError
from lark.lexer import BasicLexer, ContextualLexer, TerminalDef, UnlessCallback

from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.lark_load import END, load
from plait.runtime.grammar.spec import CompiledGrammar, GrammarSpec
from plait.runtime.grammar.vocabulary import Vocabulary

EOS = 300
WORDS = [
    '", "',
    '": ',
    "sel",
    "select",
    "if ",
    "iff",
    "((",
    "1.",
    "e5",
    "/*",
    "*/",
    " a",
    "])",
    "--",
]
TOKENS = [*(bytes((b,)) for b in range(256)), *(word.encode() for word in WORDS)]
VOCABULARY = Vocabulary(TOKENS, (EOS,), EOS + 4)
COMPILER = GrammarCompiler(VOCABULARY, 30.0, 1_000_000)

# A grammar, and texts of it; what is near to a text is tried as well.
CASES: dict[str, tuple[str, list[str]]] = {
    "json": (
        r"""
        start: value
        ?value: object | array | ESCAPED_STRING | SIGNED_NUMBER | "true" | "false" | "null"
        array: "[" [value ("," value)*] "]"
        object: "{" [pair ("," pair)*] "}"
        pair: ESCAPED_STRING ":" value
        %import common (ESCAPED_STRING, SIGNED_NUMBER, WS)
        %ignore WS
        """,
        ['{"a": [1, 2.5e3, "x\\"y"], "": null}', " [true,\n{}] ", '"\\\\"', "-1.", "[[[]]]"],
    ),
    "sql": (
        r"""
        start: "select"i cols "from"i NAME [where] ["order"i "by"i NAME ("asc"i | "desc"i)?]
        cols: "*" | col ("," col)*
        col: NAME ["as"i NAME]
        where: "where"i cond
        cond: cond "and"i test | test
        test: NAME OP (NAME | NUMBER | STRING) | "(" cond ")" | NAME "is"i ["not"i] "null"i
        OP: "=" | "<" | ">" | "<=" | ">=" | "<>"
        NAME: /[a-z_][a-z0-9_]*/i
        STRING: /'([^']|'')*'/
        NUMBER: /\d+(\.\d+)?/
        %ignore /--[^\n]*/
        %ignore /\s+/
        """,
        [
            "SELECT a, selected aS b FROM t WHERE (x >= 1.5 AND y <> 'it''s') order by z desc",
            "select*from t-- all\nwhere n is not null",
            "select a from b where c=d order by order_",
        ],
    ),
    "arithmetic": (
        r"""
        start: expr
        ?expr: expr "+" term | expr "-" term | term
        ?term: term "*" factor | term "/" factor | factor
        ?factor: NUMBER | "-" factor | "(" expr ")" | CNAME ["(" [expr ("," expr)*] ")"]
        %import common (NUMBER, CNAME)
        %ignore " "
        """,
        ["1+2*3-4/x", "-(-(a1))", "f(x, -2.5e1) + g()", "1 + 2", "1.5.e"],
    ),
    "keywords": (
        r"""
        start: stmt+
        stmt: "if" expr ":" block | NAME "=" expr ";" | "pass" ";"
        block: "{" stmt* "}"
        expr: expr "or" atom | atom
        atom: "not" atom | NAME | INT | "(" expr ")"
        NAME: /[a-zA-Z_]\w*/
        INT: /0|[1-9]\d*/
        %ignore /[ \t\n]+/
        %ignore /#[^\n]*/
        """,
        [
            "if not iffy or 1: { pass; } # if\nx = notx;",
            "ifx = or1 or (0);",
            "pass;pass ;if 10or 2:{}",
        ],
    ),
    "comments": (
        r"""
        start: (WORD | "<" start ">")*
        WORD: /[a-z]+/
        %import common (C_COMMENT, CPP_COMMENT)
        %ignore C_COMMENT
        %ignore CPP_COMMENT
        %ignore " "
        """,
        ["a/* x **/<b> c // d", "/**/ /* * / */", "<<>a>//"],
    ),
    "movies": (  # syncode#116: quotes that two statements share
        r"""
        start: print | assign
        print: "print" "(" place ("," place)* ")"
        assign: place "=" QUOTED
        place: "movie" "[" "'" KEY "'" "]"
        KEY: "title" | "cast" | "rating"
        QUOTED: /'[^'\n]+'/ | /"[^"\n]+"/
        %ignore " "
        """,
        [
            "print(movie['title'])",
            "print(movie['cast'], movie['rating'])",
            "movie['cast'] = \"a b\"",
        ],
    ),
    "preferences": (
        r"""
        start: (IF NAME | NAME | LET "=" (HEX | INT | FLOAT) | SIGN | STRING)+
        IF.2: "if"
        LET.2: /let\b/
        NAME: /[a-z][a-z0-9]*/
        HEX.3: /0x[0-9a-f]+/
        INT: /[0-9]+/
        FLOAT: /[0-9]+\.[0-9]*/
        SIGN: "<" | "<=" | "<=>"
        STRING: /\"\"\"(.|\n)*?\"\"\"/ | /"(?!"").*?(?<!\\)(\\\\)*?"/
        %ignore /[ \n]/
        """,
        ['iffy let = 0x1f<=<=>"a\\"b"', 'letx "" let=12', '"""a"b""" if x', "let = 1.5 let"],
    ),
    "first match": (
        r"""
        start: (A | B | C | D | E | F)+
        A: /a|ab/
        B: /b+?c?/
        C: /ca*?b/
        D: /d.*$/m
        E: /e(?!f)[fg]{1,3}?/
        F: /f{2,3}(?![a-c])/
        %ignore /\n/
        """,
        ["abbc", "caabdxyz\nab", "eggd", "ffa", "ff\nfff"],
    ),
    "templates": (
        r"""
        start: _list{pair, ","}
        pair: KEY "=" (VALUE | "[" _list{VALUE, ";"} "]")
        _list{x, sep}: x (sep x)*
        KEY: /[a-z]+/
        VALUE: /[a-z0-9]+/
        """,
        ["a=1,b=[x;2]", "k=k"],
    ),
    "unicode": (
        r"""
        start: (WORD | NUMBER | "é" | QUOTE)+
        WORD: /[^\W\d_]+/
        NUMBER: /\d+/
        QUOTE: /«[^»]*»/
        %ignore /\s/
        """,
        ["é été 12", "«a 🙏» ж9"],
    ),
}


def compiled(source: str) -> CompiledGrammar:
    return COMPILER.compile(GrammarSpec("lark", (source,)))


def accepts(grammar: CompiledGrammar, text: str) -> bool:
    matcher = grammar.matcher()
    return all(map(matcher.accept, text.encode())) and matcher.is_accepting


def parses(lark: Lark, text: str) -> bool:
    try:
        lark.parse(text)
    except LarkError:
        return False
    return True


def near(text: str, rng: random.Random) -> str:
    """Change one to three places of a text."""
    chars = list(text)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(chars) + 1)
        chars[place : place + rng.choice([0, 1, 1, 3])] = rng.choice(["", *text, *"ai1 .<\"'/\n"])
    return "".join(chars)


@pytest.mark.parametrize("name", CASES)
def test_texts_and_what_is_near_to_them_are_accepted_where_lark_parses_them(name: str) -> None:
    source, texts = CASES[name]
    lark, grammar, rng = Lark(source, parser="lalr"), compiled(source), random.Random(3)
    tried = [*texts, "", *(near(rng.choice(texts), rng) for _ in range(400))]
    tried += [text[:end] for text in texts for end in range(len(text))]
    verdicts = [parses(lark, text) for text in tried]
    assert verdicts[0]
    assert len(set(verdicts)) == 2
    for text, verdict in zip(tried, verdicts, strict=True):
        assert accepts(grammar, text) == verdict, text


@pytest.mark.parametrize("name", CASES)
def test_every_walk_through_the_masks_parses_where_it_is_whole(name: str) -> None:
    source, _ = CASES[name]
    lark, grammar, rng = Lark(source, parser="lalr"), compiled(source), random.Random(7)
    row = np.zeros(VOCABULARY.mask_len, np.int32)
    for _ in range(25):
        matcher, data = grammar.matcher(), b""
        for _ in range(30):
            matcher.fill_bitmask(row)
            ids = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
            assert ids, data
            assert (EOS in ids) == matcher.is_accepting
            shown = [i for i in ids if 32 <= i < 127 or 256 <= i < EOS]
            token = rng.choice(shown if shown and rng.random() < 0.9 else ids)
            if token == EOS:
                break
            assert matcher.accept(token)
            data += TOKENS[token]
            if matcher.is_accepting:
                assert parses(lark, data.decode()), data


def test_a_grammar_compiles_in_little_more_than_lark_needs() -> None:
    source, _ = CASES["json"]
    compiled(source + "\n// warm")
    start_s = time.thread_time()
    Lark(source, parser="lalr")
    lark_s = time.thread_time() - start_s
    start_s = time.thread_time()
    compiled(source + "\n// again")
    assert time.thread_time() - start_s < 3 * lark_s + 0.1


def test_keywords_cost_little_more_than_lark_needs() -> None:
    words = "|".join(f'"kw{num}"i' for num in range(300))
    source = f'start: ({words})+\n%ignore " "'
    start_s = time.thread_time()
    Lark(source, parser="lalr")
    lark_s = time.thread_time() - start_s
    start_s = time.thread_time()
    grammar = GrammarCompiler(VOCABULARY, 10.0, 200_000).compile(GrammarSpec("lark", (source,)))
    assert time.thread_time() - start_s < 3 * lark_s + 0.5
    assert accepts(grammar, "kw299 KW17 kw1kW2")
    assert not accepts(grammar, "kw300 x")


def test_what_is_taken_from_lark_is_there() -> None:
    """Pins the private parts that `lark_load` reads; see there on a new version of lark."""
    source, _ = CASES["keywords"]
    grammar = load(source)
    lark = Lark(source, parser="lalr")
    contextual = lark.parser.lexer
    assert isinstance(contextual, ContextualLexer)
    lexers = contextual.lexers
    assert grammar.lexers.keys() == grammar.actions.keys() == lexers.keys()
    assert any(END in names for a in grammar.actions.values() for names in a.reduces.values())
    assert grammar.ignored == set(lark.ignore_tokens)
    basic = [lexer for lexer in lexers.values() if isinstance(lexer, BasicLexer)]
    assert len(basic) == len(lexers)
    lexer = next(lexer for lexer in basic if {"IF", "NAME"} <= _names(lexer.terminals))
    assert [t.name for t in lexer.scanner.terminals if t.name in ("IF", "NAME")] == ["NAME"]
    assert isinstance(lexer.callback["NAME"], UnlessCallback)
    assert "IF" in {t.name for t in lexer.callback["NAME"].scanner.terminals}


def _names(terminals: Iterable[TerminalDef]) -> set[str]:
    return {terminal.name for terminal in terminals}
