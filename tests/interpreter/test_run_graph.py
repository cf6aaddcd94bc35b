"""Graphs that run whole give what their programs give."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plait import (
    Function,
    Graph,
    InvalidArgument,
    NodeError,
    Result,
    State,
    assistant,
    function,
    gen,
    run_graph,
    scripted,
    select,
    user,
)
from plait.interpreter.backends.scripted import ScriptedBackend

from .programs import talk


@pytest.fixture(scope="module")
def backend() -> Iterator[ScriptedBackend]:
    opened = scripted(talk)
    assert isinstance(opened, ScriptedBackend)
    yield opened
    opened.close()


@function
def static(s: State, q: str, n: int = 3) -> None:
    s += user(q + " and " + q)
    with s.assistant():
        s += "I say " + gen("a", max_tokens=9)
        forks = s.fork(n)
        forks += lambda i: f" ({i}) " + gen("b", max_tokens=5, temperature=1)
        forks[0] += select("c", ["yes", "no", "not"])
        forks.join()
    s += user("again: " + s.ref("a"))
    s += assistant(gen("d", regex="[a-z]{3}", temperature=1) + " and " + gen("e", max_tokens=4))


@function
def adjacent(s: State, q: str) -> None:
    s += ""
    s += q
    s += q + "" + gen("a", max_tokens=3) + "x" + "y"
    s += s.ref("a") + s.ref("a")
    s += "z" + gen("b", max_tokens=3)


@function
def nested(s: State, q: str) -> None:
    s += q
    for i, outer in enumerate(s.fork(2)):
        outer += f"{i}" + gen("o", max_tokens=3)
        for inner in outer.fork(2):
            inner += "/" + gen("i", max_tokens=3)
    with s.copy() as draft:
        draft += gen("draft", max_tokens=3)
    s += gen("end", max_tokens=3)


@function
def quotes_the_join(s: State, q: str) -> None:
    s += q
    forks = s.fork(3)
    forks += gen("o", max_tokens=4)
    joined = forks.join()
    for value in joined["o"]:
        s += f"they said {value}, "
    s += gen("end", max_tokens=3)


STATIC = [static, adjacent, nested, quotes_the_join]


each_static = pytest.mark.parametrize("program", STATIC, ids=lambda program: program.name)


def shown(result: Result) -> dict[str, object]:
    """Everything of a result that a program made."""
    values = {name: result[name] for name in result.variables}
    return {"text": result.text(), "messages": result.messages(), "values": values}


@each_static
def test_a_trace_run_whole_equals_the_run(program: Function, backend: ScriptedBackend) -> None:
    for seed in range(3):
        run = program.run("Hello {there}", backend=backend, seed=seed)
        whole = run_graph(program.trace(q="Hello {there}"), backend=backend, seed=seed)
        assert shown(whole) == shown(run)


@each_static
def test_a_trace_with_open_inputs_takes_them_later(
    program: Function, backend: ScriptedBackend
) -> None:
    run = program.run("Hello", backend=backend, seed=4)
    whole = run_graph(program.trace(), inputs={"q": "Hello"}, backend=backend, seed=4)
    assert shown(whole) == shown(run)


@each_static
def test_a_recorded_graph_repeats_its_run(program: Function, backend: ScriptedBackend) -> None:
    run = program.run("Hello", backend=backend)
    again = run_graph(run.graph, backend=backend, seed=run.seed)
    assert shown(again) == shown(run)


def test_breaks_do_not_change_the_result(backend: ScriptedBackend) -> None:
    @function
    def with_breaks(s: State, q: str) -> None:
        s += q
        assert len(s.text()) == len(q)
        s += q + gen("a", max_tokens=3)
        assert s["a"]
        s += "xy"
        s += s["a"] + s["a"]
        s += "z" + gen("b", max_tokens=3)

    for seed in range(3):
        whole = run_graph(adjacent.trace(q="Hello"), backend=backend, seed=seed)
        broken = with_breaks.run("Hello", backend=backend, seed=seed)
        assert broken.text() == whole.text()


def test_inputs_that_are_missing_or_unknown_are_named(backend: ScriptedBackend) -> None:
    graph = adjacent.trace()
    with pytest.raises(InvalidArgument, match=r"missing q, unknown r; it takes q"):
        run_graph(graph, inputs={"r": 1}, backend=backend)


def test_a_graph_that_is_not_complete_is_refused_with_its_breaks(
    backend: ScriptedBackend,
) -> None:
    @function
    def decides(s: State) -> None:
        s += "q" + gen("a", max_tokens=2)
        if s["a"] == "x":
            s += "!"

    graph = decides.trace()
    assert not graph.is_complete
    with pytest.raises(InvalidArgument, match=r"test_run_graph\.py:\d+"):
        run_graph(graph, backend=backend)


def test_a_failing_graph_raises_as_a_run_does(backend: ScriptedBackend) -> None:
    graph = adjacent.trace(q="x" * 5000)
    with pytest.raises(NodeError, match="4096"):
        run_graph(graph, backend=backend)


def test_a_graph_with_other_ids_is_refused(backend: ScriptedBackend) -> None:
    graph = adjacent.trace(q="x")
    with pytest.raises(InvalidArgument, match="ids count up"):
        run_graph(Graph("f", graph.nodes[1:]), backend=backend)
