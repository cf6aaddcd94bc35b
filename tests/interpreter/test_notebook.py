"""What a program's objects show of themselves in a notebook, and how it runs in one."""

from __future__ import annotations

import asyncio

import pytest

from plait import Backend, NodeError, State, assistant, function, gen, system, user


@function
def ask(s: State, question: str) -> str:
    s += system("Be <b>brief</b>.") + user(question)
    s += assistant(gen("a", max_tokens=6))
    return s._repr_html_()


@function
async def awaits(s: State, question: str) -> str:
    await asyncio.sleep(0)
    s += question + gen("a", max_tokens=6)
    return str(s["a"])


@function
def fails(s: State) -> None:
    s += "Before. " + gen("a", regex="(")


def test_a_result_shows_its_turns(backend: Backend) -> None:
    result = ask.run("<script>", backend=backend)
    page = result._repr_html_()
    assert "Be &lt;b&gt;brief&lt;/b&gt;." in page
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert f">{result['a']}</span>" in page


def test_a_state_shows_its_turns_and_waits_for_them(backend: Backend) -> None:
    result = ask.run("Why?", backend=backend)
    assert f">{result['a']}</span>" in result.value
    assert "assistant" in result.value


def test_a_graph_shows_itself(backend: Backend) -> None:
    graph = ask.run("Why?", backend=backend).graph
    assert "gen a max_tokens=6" in graph._repr_html_()


def test_a_failed_result_shows_what_there_is(backend: Backend) -> None:
    (result,) = fails.run_batch([{}], backend=backend)
    page = result._repr_html_()
    assert isinstance(result.error, NodeError)
    assert "Before. " in page
    assert "GrammarError" in page


@pytest.mark.parametrize("program", [ask, awaits], ids=["plain", "async"])
def test_run_works_where_a_loop_runs_already(program: object, backend: Backend) -> None:
    async def cell() -> str:
        return str(program.run("Why?", backend=backend, seed=1)["a"])  # type: ignore[attr-defined]

    first = asyncio.run(cell())
    assert first == program.run("Why?", backend=backend, seed=1)["a"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("program", [ask, awaits], ids=["plain", "async"])
def test_a_stream_works_where_a_loop_runs_already(program: object, backend: Backend) -> None:
    async def cell() -> list[str]:
        stream = program.stream("Why?", backend=backend)  # type: ignore[attr-defined]
        return [event.kind for event in stream]

    assert asyncio.run(cell())[-1] == "end"
