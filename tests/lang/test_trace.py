"""Traces: what stays in the graph, what is a break, and that no tool sees a stand-in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from plait.lang.api import assistant, gen, user
from plait.lang.errors import InvalidArgument, ProgramError, UnknownVariable
from plait.lang.graph import Graph
from plait.lang.ops import Gen, Input, Op, Source, Text, Value
from plait.lang.program import Program
from plait.lang.state import State

INTO_TEXT = "read into text; s.ref keeps it in the graph without waiting"


def trace(body: Callable[..., object], **arguments: object) -> Graph:
    return Program(body).trace(**arguments)


def ops(graph: Graph) -> list[Op]:
    return [node.op for node in graph.nodes]


def reasons(graph: Graph) -> list[str]:
    return [found.reason for found in graph.breaks]


def test_a_static_program_is_traced_whole() -> None:
    def body(s: State, question: str) -> None:
        s += user(question)
        s += assistant(gen("a"))
        s += s.ref("a")
        forks = s.fork(2)
        forks += lambda i: f"{i}" + gen("o")
        forks.join()

    graph = trace(body, question="why {}?")
    assert graph.program == "body"
    assert graph.is_complete
    assert graph.breaks == ()
    assert graph.inputs == ()
    assert ops(graph)[1] == Text("why {}?")
    assert [n.branch for n in graph.nodes][-4:] == ["0.0", "0.0", "0.1", "0.1"]


def test_arguments_left_out_become_inputs_and_defaults_stay() -> None:
    def body(s: State, a: str, b: str, k: int = 2) -> None:
        s += a
        s += f"<{a}|{b}>"
        s += ("x" + b) * 1 if k == 0 else "x" + b + "y" + a
        s += gen("g") + b

    graph = trace(body)
    a, b = Input("a"), Input("b")
    assert graph.inputs == ("a", "b")
    assert graph.is_complete
    assert graph.breaks == ()
    assert ops(graph) == [
        *(a, Text("<"), a, Text("|"), b, Text(">"), Text("x"), b, Text("y"), a, Gen("g"), b)
    ]
    assert trace(body, b="B").inputs == ("a",)


@pytest.mark.parametrize(
    "use",
    [
        lambda s: f"<{s['x']}>",
        lambda s: "<" + s["x"] + ">",
        lambda s: "<%s>" % s["x"],  # noqa: UP031
        lambda s: "<{}>".format(s["x"]),
        lambda s: "<" + str(s["x"]) + ">",
        lambda s: "".join(["<", f"{s['x']}", ">"]),
        lambda s: "<" + s["x"] + gen() + ">" if False else f"<{s['x']!s}>",
    ],
)
def test_a_value_read_into_text_stays_in_the_graph(use: Callable[[State], str]) -> None:
    def body(s: State) -> None:
        s += gen("x")
        s += use(s)

    graph = trace(body)
    assert ops(graph) == [Gen("x"), Text("<"), Value(Source(0)), Text(">")]
    assert graph.nodes[2].reads == (0,)
    assert graph.is_complete
    assert [(b.name, b.reason) for b in graph.breaks] == [("x", INTO_TEXT)]


def test_a_break_in_a_loop_is_listed_once() -> None:
    def body(s: State) -> None:
        s += gen("x")
        for _ in range(3):
            s += s["x"]
        s += s["x"]

    graph = trace(body)
    assert len(graph.breaks) == 2
    assert ops(graph).count(Value(Source(0))) == 4


def test_a_value_in_a_str_that_python_keeps_ends_the_graph_there() -> None:
    def body(s: State) -> None:
        s += gen("x")
        line = f"look up {s['x']}"
        if "nothing" not in line:
            s += "a branch taken blindly"

    graph = trace(body)
    assert ops(graph) == [Gen("x")]
    assert not graph.is_complete
    assert "not appended" in graph.breaks[-1].reason


def test_what_a_body_returns_is_used() -> None:
    @dataclass
    class Answer:
        text: str

    def body(s: State) -> object:
        s += gen("x")
        return [{"a": f"{s['x']}!"}, (s["x"], Answer(f"{s['x']}"))]

    graph = trace(body)
    assert graph.is_complete
    assert reasons(graph) == [INTO_TEXT]


@pytest.mark.parametrize(
    "read", [lambda s: s.text(), lambda s: s.messages(), lambda s: s.meta("x")]
)
def test_reading_text_or_meta_ends_the_trace(read: Callable[[State], object]) -> None:
    def body(s: State) -> None:
        s += user(gen("x"))
        read(s)
        s += "after"

    graph = trace(body)
    assert not graph.is_complete
    assert len(graph.nodes) == 3


def test_joined_values_are_stand_ins() -> None:
    def body(s: State) -> None:
        forks = s.fork(2)
        forks += gen("o")
        joined = forks.join()
        s += "\n".join(f"{i}: {value}" for i, value in enumerate(joined["o"]))
        for value in s["o"]:
            s += value

    graph = trace(body)
    assert ops(graph)[2:] == [
        *(Text("0: "), Value(Source(0)), Text("\n1: "), Value(Source(1))),
        *(Value(Source(0)), Value(Source(1))),
    ]
    assert graph.is_complete


def test_forks_broadcast_inputs() -> None:
    def body(s: State, q: str) -> None:
        forks = s.fork(2)
        forks += q

    assert ops(trace(body)) == [Input("q")] * 2


def test_async_bodies_are_traced_until_they_wait_for_something_real() -> None:
    async def inner(s: State) -> None:
        s += s["x"]

    async def static(s: State) -> str:
        s += gen("x")
        await inner(s)
        return str(s["x"])

    async def waits(s: State) -> None:
        s += gen("x")
        await asyncio.sleep(0)
        s += "after"

    async def sleeps(s: State) -> None:
        s += gen("x")
        await asyncio.sleep(1)

    assert trace(static).is_complete
    assert ops(trace(static)) == [Gen("x"), Value(Source(0))]
    for body in (waits, sleeps):
        graph = trace(body)
        assert not graph.is_complete
        assert ops(graph) == [Gen("x")]
        line = body.__code__.co_firstlineno + 2
        assert str(graph.breaks[0].where) == f"test_trace.py:{line}"


def test_a_bodys_own_error_is_raised() -> None:
    def body(s: State) -> None:
        s += gen("x")
        raise ValueError("mine")

    def unknown(s: State) -> None:
        s["nothing"]

    with pytest.raises(ValueError, match="mine"):
        trace(body)
    with pytest.raises(UnknownVariable):
        trace(unknown)
    with pytest.raises(InvalidArgument, match="unknown: q"):
        trace(body, q="x")


def test_a_loop_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.lang.tracing.MAX_NODES", 1000)
    monkeypatch.setattr("plait.lang.trace.MAX_NODES", 1000)

    def body(s: State) -> None:
        while True:
            try:
                s += "x" + gen()
            except Exception:
                continue

    with pytest.raises(ProgramError, match=r"test_trace.py:\d+: .* passed 1,000 nodes"):
        trace(body)
