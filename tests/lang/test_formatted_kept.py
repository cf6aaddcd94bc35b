"""Formatted text in a trace: kept for a while, or put elsewhere, it is a break."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from plait.lang.api import gen, select, user
from plait.lang.expr import Expr
from plait.lang.forks import Forks
from plait.lang.graph import Graph
from plait.lang.ops import Gen, Source, Text, Value
from plait.lang.program import Program
from plait.lang.state import State


def trace(body: Callable[..., object], **arguments: object) -> Graph:
    return Program(body).trace(**arguments)


KEPT = "formatted here and kept"


LOST = "put into a str that is not appended"


def two_statements(value: str) -> str:
    line = f"- {value}\n"
    return line


def ask(s: State, question: str) -> None:
    s += user(question)


def read_by_a_test(s: State) -> None:
    line = f"look up {s['x']}"
    s += line
    if "foo" in line:
        s += "!"


def read_by_a_tool(s: State) -> None:
    line = f"look up {s['x']}"
    json.dumps(line)
    s += line


def on_the_same_line(s: State) -> None:
    line = f"{s['x']}"; s += line  # noqa: E702  # fmt: skip


def by_a_name_inside(s: State) -> None:
    s += (line := f"{s['x']}")
    s += "foo" if "foo" in line else "bar"


def by_a_name_inside_a_helper(s: State) -> None:
    line = ""
    s += "".join([line := f"{v}" for v in [s["x"]] if s.fork(1)])
    s += "foo" if "foo" in line else "bar"


def through_a_list(s: State) -> None:
    lines = [f"{s['x']}" for _ in range(2)]
    s += "\n".join(lines)


def through_a_display(s: State) -> None:
    lines = [*"ab", f"{s['x']}"]
    s += "\n".join(lines)


def through_an_expression(s: State) -> None:
    turn: Expr = user(f"{s['x']}")
    s += turn


def through_an_argument(s: State) -> None:
    ask(s, f"what of {s['x']}?")


def through_a_helper(s: State) -> None:
    s += two_statements(s["x"])


def through_a_loop(s: State) -> None:
    lines: list[str] = []
    for _ in range(2):
        s += lines.pop() if lines else "first"
        lines.append(f"{s['x']}")
    s += lines[0]


def through_a_callback(s: State) -> None:
    line = f"{s['x']}"
    forks: Forks = s.fork(2)
    forks += lambda i: line


def returned_later(s: State) -> str:
    line = f"{s['x']}"
    return line


EACH_KEPT = [
    *(by_a_name_inside, by_a_name_inside_a_helper),
    *(read_by_a_test, read_by_a_tool, on_the_same_line, through_a_list, through_a_display),
    *(through_an_expression, through_an_argument, through_a_helper, through_a_loop),
    *(through_a_callback, returned_later),
]


@pytest.mark.parametrize("body", EACH_KEPT)
def test_text_that_is_kept_before_it_is_appended_is_a_break(
    body: Callable[[State], object],
) -> None:
    def start(s: State) -> object:
        s += gen("x")
        return body(s)

    graph = trace(start)
    assert not graph.is_complete
    assert KEPT in graph.breaks[-1].reason
    assert graph.breaks[-1].name == "x"


def test_the_break_is_where_the_text_was_formed_and_the_graph_is_kept() -> None:
    def body(s: State) -> None:
        s += gen("x")
        line = f"look up {s['x']}"
        s += line

    graph = trace(body)
    assert [node.op for node in graph.nodes] == [Gen("x"), Text("look up "), Value(Source(0))]
    found = graph.breaks[-1]
    assert str(found.where) == f"test_formatted_kept.py:{body.__code__.co_firstlineno + 2}"
    assert "append it in the same statement" in found.reason
    assert "s.ref" in found.reason


@pytest.mark.parametrize(
    "use",
    [
        lambda s, x: gen("y", stop=f"{x}"),
        lambda s, x: gen("y", regex=f"{x}"),
        lambda s, x: gen(f"{x}"),
        lambda s, x: select("y", [f"{x}", "b"]),
        lambda s, x: "yes" if "foo" in f"{x}" else "no",
        lambda s, x: f"{x}"[:3],
    ],
)
def test_text_that_goes_elsewhere_is_a_break(use: Callable[[State, Any], Any]) -> None:
    def body(s: State) -> None:
        s += gen("x")
        s += use(s, s["x"])
        s += "after"

    graph = trace(body)
    assert not graph.is_complete
    assert [node.op for node in graph.nodes] == [Gen("x")]
    assert LOST in graph.breaks[-1].reason


def test_a_failure_over_kept_text_ends_the_trace() -> None:
    def body(s: State) -> None:
        s += gen("x")
        line = f"{s['x']}"
        s += line
        json.loads(line)

    graph = trace(body)
    assert not graph.is_complete
    assert "JSONDecodeError" in graph.breaks[-1].reason
