"""Grammars of grammars without a model: tried out, refused, and never their own parts."""

from __future__ import annotations

from typing import Any

import pytest

from plait import Grammar, InvalidArgument

from .tool_calls import CALL, EVEN, TEXT


def test_a_grammar_with_parts_can_be_tried_out() -> None:
    assert CALL.match(TEXT)
    assert CALL.mismatch("weather(1)").startswith("character 8")
    assert "parts=['tool', 'args', 'when']" in repr(CALL)
    assert all(CALL.match(CALL.sample(seed)) for seed in range(5))
    assert "args: #/properties/days/type" in CALL.explain().exact
    odd = Grammar(ebnf='root ::= "<" v ">"', parts={"v": Grammar(schema=EVEN)})
    assert odd.match("<[1,2]>")
    assert odd.mismatch("<[1,1]>") == "part v: $: [1, 1] has non-unique elements"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regex": "a", "parts": {}}, "give lark or ebnf"),
        ({"ebnf": "root ::= x", "parts": {"x": "a"}}, r"parts\['x'\]='a'.*must be a Grammar, such"),
        ({"ebnf": "root ::= x", "parts": [CALL]}, "parts must be a dict of Grammars by name"),
        ({"ebnf": "root ::= x", "parts": {3: CALL}}, "parts must be a str"),
    ],
)
def test_parts_that_are_none_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Grammar(**options)


def test_a_grammar_cannot_become_its_own_part() -> None:
    parts: dict[str, Grammar] = {}
    grammar = Grammar(ebnf="root ::= x", parts=parts | {"x": Grammar(regex="a")})
    parts["x"] = grammar
    assert grammar.match("a")
    with pytest.raises(AttributeError):
        grammar.constraint = CALL.constraint  # type: ignore[misc]
    assert grammar.constraint.grammar is not None
    with pytest.raises(AttributeError):
        grammar.constraint.grammar.parts = ()  # type: ignore[misc]
