"""Grammars that are none, deep ones, and cut values: what users of other engines met with."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plait
from plait import (
    Backend,
    Grammar,
    GrammarError,
    Invalid,
    InvalidArgument,
    State,
    Truncated,
    function,
    gen,
)


@function
def ask(s: State, options: dict[str, Any]) -> None:
    s += "say:"
    s += gen("x", **options)


def say(prompt: str) -> str:
    return "yes" if prompt.endswith("say:") else ""


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = plait.scripted(say)
    yield opened
    opened.close()


def value_of(script: Callable[[str], Any], **options: Any) -> Any:
    backend = plait.scripted(script)
    try:
        return ask.run(options={"temperature": 0, **options}, backend=backend)["x"]
    finally:
        backend.close()


def matches(schema: object, texts: list[str]) -> list[str]:
    grammar = Grammar(schema=schema)
    return [text for text in texts if grammar.match(text)]


# Grammars that are none


BAD: list[dict[str, Any]] = [
    {"regex": "("},
    {"regex": "a{3,1}"},
    {"regex": r"(a)\1"},
    {"regex": "a|*"},
    {"regex": "(?!)"},
    {"schema": {"type": "not-a-type"}},
    {"schema": {"$ref": "#"}},
    {"schema": {"$ref": "#/nope"}},
    {"schema": {"type": "number", "minimum": 5, "maximum": 3}},
    {"schema": {"enum": []}},
    {"schema": False},
    {"schema": {"pattern": "("}},
    {"grammar": "start: nowhere"},
    {"grammar": 'other: "a"'},
    {"grammar": 'start: A\nA: ""'},
    {"grammar": "root ::= nowhere"},
    {"grammar": 'root ::= root "a"'},
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: json.dumps(bad))
def test_a_bad_grammar_is_the_fault_of_its_own_row_alone(
    bad: dict[str, Any], backend: Backend
) -> None:
    good = {"options": {"regex": "yes|no", "temperature": 0}}
    start = time.monotonic()
    results = ask.run_batch([good] * 4 + [{"options": bad}] + [good] * 4, backend=backend)
    assert time.monotonic() - start < 2
    assert [result.ok for result in results] == [True] * 4 + [False] + [True] * 4
    assert [result["x"] for result in results if result.ok] == ["yes"] * 8
    error = results[4].error
    assert isinstance(error, GrammarError)
    assert error.where is not None
    word = next(iter(bad)) if "grammar" not in bad else "lark" if ":=" not in str(bad) else "ebnf"
    assert word in str(error) or "no text matches" in str(error)
    assert ask.run(**good, backend=backend)["x"] == "yes"


@pytest.mark.parametrize("bad", [[], [""], [1], ["a", "a"], "abc", [None], {"a": 1}])
def test_bad_choices_are_refused_before_anything_runs(bad: Any, backend: Backend) -> None:
    with pytest.raises(InvalidArgument, match="choices"):
        ask.run(options={"choices": bad}, backend=backend)


def test_an_empty_regex_and_a_lookahead_are_fine() -> None:
    assert value_of(say, regex="") == ""
    assert value_of(lambda prompt: "xy", regex="(?=x)x?y|(?=x)xy") == "xy"


# Recursion


TREE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "k": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["v", "k"],
    "additionalProperties": False,
}


def nested(depth: int) -> str:
    return '{"v":1,"k":[' * depth + '{"v":2,"k":[]}' + "]}" * depth


def test_trees_are_fifty_levels_deep() -> None:
    backend = plait.scripted(lambda prompt: nested(50))
    value = ask.run(options={"schema": TREE, "temperature": 0}, backend=backend)["x"]
    assert value == json.loads(nested(50))
    backend.close()


def test_schemas_may_refer_to_each_other_by_odd_names() -> None:
    schema = {
        "$defs": {
            "a b/c%": {"type": "array", "items": {"$ref": "#/$defs/b"}},
            "b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a%20b~1c%25"}]},
        },
        "$ref": "#/$defs/a%20b~1c%25",
    }
    assert matches(schema, ["[]", "[null,[null]]", "[[[1]]]", "null"]) == ["[]", "[null,[null]]"]


@pytest.mark.parametrize("depth", [200, 500, 5000])
def test_a_deep_schema_is_an_error_of_its_own_or_works(depth: int, backend: Backend) -> None:
    schema: dict[str, Any] = {"type": "null"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    start = time.monotonic()
    try:
        (result,) = ask.run_batch([{"options": {"schema": schema}}], backend=backend)
        assert result.ok or isinstance(result.error, GrammarError | Truncated | InvalidArgument)
    finally:
        assert time.monotonic() - start < 2
    assert ask.run(options={"regex": "yes"}, backend=backend)["x"] == "yes"


def test_a_value_that_opens_for_ever_is_truncated() -> None:
    backend = plait.scripted(lambda prompt: '{"v":1,"k":[' * 300)
    options = {"schema": TREE, "temperature": 0, "max_tokens": 2400}
    (result,) = ask.run_batch([{"options": options}], backend=backend)
    assert isinstance(result.error, Truncated)
    assert result.error.text == ('{"v":1,"k":[' * 300)[:2400]
    backend.close()


# Cut values, rows of different length


def test_rows_of_different_length_equal_their_solo_runs() -> None:
    backend = plait.scripted(lambda prompt: json.dumps(["abc"] * 9, separators=(",", ":")))
    rows = [
        {
            "options": {
                "schema": {"type": "array", "maxItems": i},
                "temperature": 0,
                "max_tokens": 50,
            }
        }
        for i in range(8)
    ]
    together = ask.run_batch(rows, backend=backend)
    alone = [ask.run(**row, backend=backend)["x"] for row in rows]
    assert [result["x"] for result in together] == alone == [["abc"] * i for i in range(8)]
    backend.close()


# Values that are deep, and patterns that backtrack


LISTS = {"type": "array", "items": {"$ref": "#"}}
ONCE = {**LISTS, "uniqueItems": True}  # which is only checked


@pytest.mark.parametrize("depth", [400, 5000])
def test_a_deep_value_that_cannot_be_validated_is_invalid(depth: int) -> None:
    text = "[" * depth + "]" * depth
    deep = "it is nested too deeply to be read and validated"
    part = Grammar(ebnf='root ::= "<" p ">"', parts={"p": Grammar(schema=ONCE)})
    assert Grammar(schema=ONCE).mismatch(text) == deep
    assert part.mismatch(f"<{text}>") == f"part p: {deep}"
    assert Grammar(schema=LISTS).mismatch("[" * 900 + "]" * 900) in ("", deep)


@pytest.mark.parametrize("captures", [[], ["p"]])
def test_a_deep_value_of_a_part_is_invalid(captures: list[str]) -> None:
    part = Grammar(ebnf='root ::= "<" p ">"', parts={"p": Grammar(schema=ONCE)})
    text = f"<{'[' * 400}{']' * 400}>"
    with pytest.raises(Invalid, match="nested too deeply to be read and validated"):
        value_of(lambda prompt: text, grammar=part, captures=captures)


BACKTRACKS = {"type": "string", "anyOf": [{"pattern": r"^([a-z]+ ?)+\.$"}, {"pattern": "!$"}]}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": BACKTRACKS},
        {"type": "array", "items": BACKTRACKS, "uniqueItems": True},  # which is only checked
        {  # a reference to what names its dialect
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": ["array", "string"],
            "items": {"$ref": "#"},
            "uniqueItems": True,
            "anyOf": [{"type": "array"}, *BACKTRACKS["anyOf"]],
        },
    ],
)
def test_validation_does_not_backtrack(schema: dict[str, Any]) -> None:
    text = json.dumps(["a" * 36 + "!"])
    assert Grammar(schema=schema).match(text)
    assert value_of(lambda prompt: text, schema=schema) == json.loads(text)


def test_a_number_that_a_stop_string_has_cut_is_validated() -> None:
    with pytest.raises(Invalid, match="cut by the stop string"):
        value_of(lambda prompt: "125", schema={"type": "integer", "minimum": 100}, stop="2")


@pytest.mark.parametrize("text", [b"a", None, 1])
def test_a_text_to_match_is_a_str(text: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"test_grammar_faults\.py:\d+: Grammar.*a str"):
        Grammar(regex="a").match(text)
