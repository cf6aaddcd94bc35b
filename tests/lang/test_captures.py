"""Captures and parts in the language: variables, references, traces, graphs, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from plait.lang.api import gen
from plait.lang.constraint import MAX_DEPTH
from plait.lang.errors import GraphError, InvalidArgument
from plait.lang.ops import Constraint, Gen, GrammarPart, GrammarText, JsonSchema
from plait.lang.program import Program
from plait.lang.serialize import dumps, loads
from plait.lang.show import to_text
from plait.lang.state import State

Start = Callable[..., tuple[State, Any]]
GROUPS = r"(?P<day>\d+)\.(?P<month>\d+)"


@dataclass
class Made:
    """What has a constraint, as plait.Grammar does."""

    constraint: Constraint


TOOL = Constraint(choices=("find", "get"))
ARGS = Constraint(schema=JsonSchema('{"type":"object"}', whitespace=1))
CALL = Made(
    Constraint(
        grammar=GrammarText(
            "ebnf",
            'root ::= tool "(" args ")"',
            (GrammarPart("tool", TOOL), GrammarPart("args", ARGS)),
        )
    )
)


def test_a_capture_is_a_variable_of_its_branch(start: Start) -> None:
    s, driver = start(lambda prompt: "14.7.")
    s += gen("date", regex=GROUPS, captures=["day", "month"])
    assert s.variables() == ("date", "day", "month")
    assert "day" in s
    assert s["day"] == "day of 14.7."
    assert s.meta("day") == s.meta("date")
    s += "on " + s.ref("day")
    assert s.text() == "14.7.on day of 14.7."
    assert driver.tape.node(2).reads == (0,)


def test_a_later_gen_of_the_name_overwrites_a_capture(start: Start) -> None:
    s, _ = start(lambda prompt: "1.2")
    s += gen("day") + gen(regex=GROUPS, captures=["day"])
    assert s["day"] == "day of 1.2"
    s += gen("day")
    assert s["day"] == "1.2"


def test_a_join_gathers_captures(start: Start) -> None:
    s, _ = start(lambda prompt: "1.2")
    forks = s.fork(2)
    forks[0] += gen(regex=GROUPS, captures=["day"])
    assert forks.join()["day"] == ["day of 1.2", None]
    assert s["day"] == ["day of 1.2", None]


def test_a_fork_inherits_captures(start: Start) -> None:
    s, _ = start(lambda prompt: "1.2")
    s += gen(regex=GROUPS, captures=["day"])
    child = s.copy()
    child += child.ref("day")
    assert child["day"] == "day of 1.2"


def call(s: State) -> None:
    s += gen("call", grammar=CALL, captures=["tool", "args"])
    s += s.ref("tool") + " with " + s.ref("args")
    s += gen("answer")


def test_a_graph_keeps_parts_and_captures() -> None:
    graph = Program(call).trace()
    assert graph.is_complete
    again = loads(dumps(graph))
    assert again == graph
    assert again.digest() == graph.digest()
    op = again.nodes[0].op
    assert isinstance(op, Gen)
    assert op.captures == ("tool", "args")
    assert op.constraint == CALL.constraint
    assert op.schema_of("args") == ARGS.schema
    assert op.schema_of("tool") is None
    shown = to_text(graph)
    assert 'parts=["tool", "args"] captures=["tool", "args"]' in shown
    assert "tool of 0" in shown


def test_a_trace_gives_a_capture_as_text_and_a_schema_s_value_as_such() -> None:
    def text(s: State) -> None:
        s += gen(grammar=CALL, captures=["tool", "args"])
        s += "use " + s["tool"]

    def value(s: State) -> None:
        s += gen(grammar=CALL, captures=["tool", "args"])
        s += "use " + s["args"]

    assert Program(text).trace().is_complete
    graph = Program(value).trace()
    assert not graph.is_complete
    assert [stop.name for stop in graph.breaks] == ["args"]


def test_a_grammar_of_any_kind_is_as_its_option() -> None:
    for constraint in (TOOL, ARGS, Constraint(regex="a+"), CALL.constraint):
        (op,) = gen("x", grammar=Made(constraint)).parts
        assert isinstance(op, Gen)
        assert op.constraint == constraint


def nested(depth: int) -> Constraint:
    inner = TOOL
    for _ in range(depth):
        inner = Constraint(grammar=GrammarText("ebnf", "root ::= x", (GrammarPart("x", inner),)))
    return inner


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regex": GROUPS, "captures": ["dya"]}, r"unknown group dya \(did you mean day\?\)"),
        ({"regex": "a+", "captures": ["day"]}, r"no named group; write \(\?P<day>"),
        ({"regex": GROUPS, "captures": "day"}, "captures='day'"),
        ({"regex": GROUPS, "captures": ["day", "day"]}, "'day' is there twice"),
        ({"regex": "(?P<x>a)", "captures": ["x"]}, "'x' is the gen's own name"),
        ({"regex": GROUPS, "captures": [""]}, "not empty"),
        ({"choices": ["a"], "captures": ["a"]}, "groups of a regex, or rules, terminals and parts"),
        ({"schema": {}, "captures": ["a"]}, "groups of a regex"),
        ({"captures": ["a"]}, "groups of a regex"),
        ({"grammar": Made(nested(MAX_DEPTH + 1))}, "more than 32 grammars in each other"),
        ({"grammar": 3}, "Lark's syntax"),
    ],
)
def test_what_has_no_meaning_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message) as caught:
        gen("x", **options)
    assert "test_captures.py:" in str(caught.value)


@pytest.mark.parametrize("kinds", [{}, {"regex": "a", "choices": ("b",)}])
def test_a_constraint_is_exactly_one(kinds: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="one of regex, choices, schema, grammar; give one"):
        Constraint(**kinds)


def test_no_captures_are_none() -> None:
    assert gen("x", captures=[]).parts == gen("x").parts
    (op,) = gen("x", grammar=Made(nested(MAX_DEPTH))).parts
    assert isinstance(op, Gen)


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ({"captures": ["x"]}, "groups of a regex"),
        ({"grammar": {"format": "lark", "source": "a", "parts": [{"name": "x"}]}}, "missing field"),
        (
            {
                "grammar": {
                    "format": "lark",
                    "source": "a",
                    "parts": [{"name": "x", "constraint": {}}],
                }
            },
            r"parts\[0\].constraint: a constraint is one of",
        ),
        (
            {
                "grammar": {
                    "format": "ebnf",
                    "source": "a",
                    "parts": [{"name": "x", "constraint": {"regex": "a"}}] * 2,
                }
            },
            "'x' is there twice",
        ),
    ],
)
def test_a_damaged_graph_is_refused(op: dict[str, object], message: str) -> None:
    op = op if "captures" in op else {"constraint": op}
    node = {"id": 0, "op": {"kind": "gen", **op}, "prev": None}
    with pytest.raises(GraphError, match=message):
        loads(json.dumps({"plait_graph": 5, "program": "p", "nodes": [node]}))


def test_a_use_of_what_is_not_captured_is_refused() -> None:
    data = json.loads(dumps(Program(call).trace()))
    data["nodes"][1]["op"]["source"]["capture"] = "nope"
    with pytest.raises(GraphError, match='its source 0 does not capture "nope"'):
        loads(json.dumps(data))


def test_a_graph_nested_without_end_is_refused() -> None:
    inner: dict[str, Any] = {"regex": "a"}
    for _ in range(180):
        part = {"name": "x", "constraint": inner}
        inner = {"grammar": {"format": "ebnf", "source": "a", "parts": [part]}}
    node = {"id": 0, "op": {"kind": "gen", "constraint": inner}, "prev": None}
    with pytest.raises(GraphError, match=r"nested too deeply|more than 32"):
        loads(json.dumps({"plait_graph": 5, "program": "p", "nodes": [node]}))
