"""Programs inside programs: their text kept or dropped, their variables their own."""

from __future__ import annotations

import pytest

from plait import Backend, InvalidArgument, State, UnknownVariable, function, gen, run_graph

from .programs import two


@function
def sub(s: State, word: str) -> str:
    s += f"{word} two: " + gen("a", max_tokens=8, temperature=0)
    return str(s["a"])


@function
def outer(s: State, keep: bool) -> object:
    s += "b: " + gen("a", max_tokens=8, temperature=0)
    value = s.call(sub, "go", keep=keep)
    return value, s["a"], s.variables()


@pytest.mark.parametrize(("keep", "text"), [(True, "b: Bgo two: second"), (False, "b: B")])
def test_a_call_keeps_or_drops_its_text_and_leaves_no_variable(
    keep: bool, text: str, backend: Backend
) -> None:
    result = outer.run(keep, backend=backend)
    assert result.value == ("second", "B", ("a",))
    assert result.text() == text
    assert result.variables == ("a",)
    again = run_graph(result.graph, backend=backend)
    assert (again.text(), again["a"]) == (text, "B")


def test_a_call_sees_none_of_the_callers_variables(backend: Backend) -> None:
    @function
    def nosy(s: State) -> object:
        return s["a"]

    @function
    def program(s: State) -> None:
        s += "b: " + gen("a", max_tokens=8, temperature=0)
        s.call(nosy)

    with pytest.raises(UnknownVariable, match="known: none yet"):
        program.run(backend=backend)


def test_an_async_program_is_called_without_await(backend: Backend) -> None:
    @function
    async def inner(s: State) -> str:
        s += "two: " + gen("x", max_tokens=8, temperature=0)
        return str(s["x"])

    @function
    def program(s: State) -> object:
        return s.call(inner), s.call(inner, keep=False), s.text()

    @function
    async def asynchronous(s: State) -> object:
        return s.call(inner)

    expected = ("second", "second", "two: second")
    assert program.run(backend=backend).value == expected
    assert program.run_batch([{}], backend=backend)[0].value == expected
    assert asynchronous.run(backend=backend).value == "second"


def test_a_call_in_an_open_turn_goes_on_in_it(backend: Backend) -> None:
    @function
    def program(s: State) -> list[dict[str, str]]:
        with s.assistant():
            s.call(two)
            s += "!"
        return s.messages()

    (message,) = program.run(backend=backend).value
    assert message == {"role": "assistant", "content": "one: first two: second!"}


def test_what_is_no_program_is_refused(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s.call(len)  # type: ignore[arg-type]

    with pytest.raises(InvalidArgument, match="pass a program"):
        program.run(backend=backend)


def test_a_trace_has_the_calls_nodes() -> None:
    @function
    def program(s: State) -> None:
        s.call(quiet)
        s += "end"

    @function
    def quiet(s: State) -> None:
        s += "in " + gen("x")

    graph = program.trace()
    assert graph.is_complete
    assert [node.branch for node in graph.nodes] == ["0.0", "0.0", "", ""]
