"""Stand-ins: they go into text, and nowhere else."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from typing import Any

import pytest

from plait.lang.api import gen, select
from plait.lang.errors import InvalidArgument
from plait.lang.graph import Graph
from plait.lang.ops import Gen, Op, Text
from plait.lang.program import Program
from plait.lang.state import State

INTO_TEXT = "read into text; s.ref keeps it in the graph without waiting"


def trace(body: Callable[..., object], **arguments: object) -> Graph:
    return Program(body).trace(**arguments)


def ops(graph: Graph) -> list[Op]:
    return [node.op for node in graph.nodes]


def reasons(graph: Graph) -> list[str]:
    return [found.reason for found in graph.breaks]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x == "yes",
        lambda x: operator.eq("yes", x),
        lambda x: x != "yes",
        lambda x: x < "b",
        lambda x: "a" in x,
        lambda x: x in ["a"],
        lambda x: x in {"a"},
        lambda x: x in "abc",
        lambda x: {"a": 1}[x],
        lambda x: bool(x),
        lambda x: not x,
        lambda x: len(x),
        lambda x: list(x),
        lambda x: x[0],
        lambda x: x[1:],
        lambda x: int(x),
        lambda x: float(x),
        lambda x: [1, 2][x],
        lambda x: x * 2,
        lambda x: x.strip(),
        lambda x: x.startswith("a"),
        lambda x: hash(x),
        lambda x: repr(x),
        lambda x: f"{x:>8}",
        lambda x: re.search("a", x),
        lambda x: json.loads(x),
        lambda x: json.dumps({"x": x}),
        lambda x: open(x),  # noqa: SIM115
        lambda x: ", ".join([x]),
        lambda x: sorted([x, x]),
        lambda x: x.append("a"),
        lambda x: x(),
    ],
)
@pytest.mark.parametrize("kind", ["value", "input"])
def test_any_other_use_ends_the_trace(use: Callable[[Any], object], kind: str) -> None:
    called: list[str] = []

    def body(s: State, q: str) -> None:
        s += gen("x")
        try:
            use(s["x"] if kind == "value" else q)
        except (ValueError, OSError):
            called.append("handler")
        called.append("tool")
        s += "after"

    graph = trace(body)
    assert not graph.is_complete
    assert ops(graph) == [Gen("x")]
    assert called == []
    (found,) = graph.breaks
    assert found.where is not None
    assert found.where.file == __file__


def test_a_hard_break_says_where_what_and_why() -> None:
    def body(s: State) -> None:
        with s.user():
            s += gen("x")
            if s["x"] == "a":
                s += "b"

    (found,) = trace(body).breaks
    assert str(found.where) == f"test_standin.py:{body.__code__.co_firstlineno + 3}"
    assert (found.name, found.reason) == ("x", "== needs the value")


def test_a_body_cannot_swallow_the_end_of_its_trace() -> None:
    def body(s: State) -> None:
        s += gen("x")
        try:
            int(s["x"])
        except Exception:
            s += "handler"
        finally:
            s += "finally"

    assert ops(trace(body)) == [Gen("x")]


def test_a_str_is_known_to_be_one_and_an_input_is_not() -> None:
    def of_value(s: State) -> None:
        s += select("x", ["a", "b"])
        s += "str" if isinstance(s["x"], str) and not isinstance(s["x"], list) else "other"

    def of_input(s: State, q: object) -> None:
        s += "str" if isinstance(q, str) else "other"

    assert ops(trace(of_value))[1] == Text("str")
    assert reasons(trace(of_input)) == ["a test of its type needs the value"]


@pytest.mark.parametrize(
    "use",
    [
        lambda s, x: gen(stop=x),
        lambda s, x: gen(x),
        lambda s, x: gen(choices=[x]),
        lambda s, x: gen(max_tokens=x),
        lambda s, x: gen(ignore_eos=x),
        lambda s, x: select("y", x),
        lambda s, x: s.fork(x),
        lambda s, x: s[x],
        lambda s, x: x in s,
    ],
)
def test_options_need_values(use: Callable[[State, Any], object]) -> None:
    def body(s: State, x: Any) -> None:
        use(s, x)

    graph = trace(body)
    assert not graph.is_complete
    assert graph.breaks[0].name == "x"


def test_a_stand_in_has_no_meaning_elsewhere(start: Callable[..., tuple[State, Any]]) -> None:
    outside, _ = start()
    kept: list[str] = []

    def body(s: State, q: str) -> None:
        kept.append(q)

    trace(body)
    with pytest.raises(InvalidArgument, match="outside of its trace"):
        outside += kept[0]


def test_text_that_looks_like_a_sentinel_is_text() -> None:
    def body(s: State, q: str) -> None:
        s += q + gen("x")

    text = "\U0010fffc123456789012:0\U0010fffd"
    assert ops(trace(body, q=text))[0] == Text(text)
