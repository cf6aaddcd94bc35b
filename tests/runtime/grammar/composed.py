"""Grammars made of grammars, for several tests; what each part matches is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from plait.runtime.grammar.explain import match
from plait.runtime.grammar.spec import GrammarSpec, SchemaOptions

ARGS = {
    "type": "object",
    "properties": {"q": {"type": "string", "maxLength": 4}, "n": {"type": "integer"}},
    "required": ["q"],
    "additionalProperties": False,
}


def schema(value: object, **options: bool | int) -> GrammarSpec:
    """Give a JSON Schema as a constraint."""
    return GrammarSpec("json_schema", (json.dumps(value),), (), SchemaOptions(**options))  # type: ignore[arg-type]


def ebnf(source: str, **parts: GrammarSpec) -> GrammarSpec:
    """Give an EBNF grammar with parts."""
    return GrammarSpec("ebnf", (source,), parts=tuple(parts.items()))


def lark(source: str, **parts: GrammarSpec) -> GrammarSpec:
    """Give a Lark grammar with parts."""
    return GrammarSpec("lark", (source,), parts=tuple(parts.items()))


TOOL = GrammarSpec("choices", ("find", "finder", "get"))
WHEN = GrammarSpec("regex", (r" at \d\d?(?!\d)",))
CALL = ebnf('root ::= tool "(" args ")" when?', tool=TOOL, args=schema(ARGS), when=WHEN)
LIST = lark(
    """
    start: NAME "(" [ARGS ("," ARGS)*] ")"
    %declare ARGS
    NAME: /[a-z]+/
    %ignore " "
    """,
    ARGS=schema(ARGS, max_blanks=1),
)
SUM = ebnf(
    """
    root ::= sum
    sum ::= sum "+" term | term
    term ::= num | "-" term | "(" sum ")"
    """,
    num=GrammarSpec("regex", ("[0-9]{1,3}",)),
)
NESTED = ebnf('root ::= "<" body ">" (sep CALL)*', body=LIST, sep=TOOL, CALL=CALL)
WRAPPED = lark('start: SUM (";" SUM)*\n%declare SUM\n%ignore " "', SUM=SUM)
EMPTY = ebnf('root ::= pre root "x" | mid | ""', pre=TOOL, mid=GrammarSpec("regex", ("a*",)))

ALL = {
    "call": CALL,
    "list": LIST,
    "sum": SUM,
    "nested": NESTED,
    "wrapped": WRAPPED,
    "empty": EMPTY,
}

# What a text of a rule or a terminal is, by grammar and name.
CAPTURES: dict[str, dict[str, Callable[[str], object]]] = {
    "call": {"root": lambda text: match(CALL, text)},
    "list": {
        "start": lambda text: match(LIST, text),
        "NAME": lambda text: re.fullmatch("[a-z]+", text),
    },
    "sum": {
        "sum": lambda text: match(SUM, text),
        "term": lambda text: match(SUM, text),
    },
    "nested": {"root": lambda text: match(NESTED, text)},
    "wrapped": {"start": lambda text: match(WRAPPED, text)},
    "empty": {"root": lambda text: match(EMPTY, text)},
}
