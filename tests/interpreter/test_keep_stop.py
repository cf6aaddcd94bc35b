"""A stop string that is kept: in the text, and not in the value."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import plait
from plait import Backend, State, function, gen
from plait.lang.serialize import dumps, loads


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = plait.scripted(lambda prompt: "one. two. " if prompt.endswith(":") else "[1,2]. ")
    yield opened
    opened.close()


@function
def ask(s: State) -> None:
    s += "say:"
    s += gen("x", stop=". ", keep_stop=True, temperature=0)
    s += "|" + s.ref("x")


def test_the_text_has_the_stop_string_and_the_value_does_not(backend: Backend) -> None:
    result = ask.run(backend=backend)
    assert result["x"] == "one"
    assert result.text() == "say:one. |one"
    assert result.meta("x").stop_reason == ". "


def test_an_output_that_no_stop_string_ended_is_whole(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "say:"
        s += gen("x", stop="!", keep_stop=True, temperature=0)

    result = program.run(backend=backend)
    assert result["x"] == "one. two. "
    assert result.text() == "say:one. two. "


def test_it_may_be_said_for_a_whole_run(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "say:"
        s += gen("x", stop=". ")
        s += gen("y", stop=". ", keep_stop=False)

    result = program.run(backend=backend, keep_stop=True, temperature=0)
    assert (result["x"], result["y"]) == ("one", "[1,2]")
    assert result.text() == "say:one. [1,2]"


def test_a_typed_value_is_read_without_it(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "list"
        s += gen("x", list[int], stop=". ", keep_stop=True, temperature=0)

    result = program.run(backend=backend)
    assert result["x"] == [1, 2]
    assert result.text() == "list[1,2]. "


def test_a_stream_shows_it_and_ends_with_the_value(backend: Backend) -> None:
    events = list(ask.stream(backend=backend))
    shown = "".join(event.text for event in events if event.kind == "delta")
    (end,) = (event for event in events if event.kind == "end")
    assert shown == end.value == "one. "
    assert end.parsed == "one"


def test_a_recorded_graph_keeps_it_too(backend: Backend) -> None:
    graph = loads(dumps(ask.run(backend=backend).graph))
    again = plait.run_graph(graph, backend=backend)
    assert again.text() == "say:one. |one"
    assert again["x"] == "one"
