"""Captures end to end: values, references, cuts, bad names, other backends' ways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import plait
from plait import (
    Backend,
    Event,
    Grammar,
    GrammarError,
    Invalid,
    NodeError,
    State,
    function,
    gen,
    run_graph,
)
from plait.interpreter.backends.remote import RemoteBackend
from plait.lang.serialize import dumps, loads

from .test_remote_backend import Runtime
from .tool_calls import CALL, EVEN, TEXT, Args, run, script


@pytest.fixture
def backend() -> Iterator[Backend]:
    opened = plait.scripted(script(TEXT))
    yield opened
    opened.close()


@function
def call(s: State) -> str:
    s += "call?"
    s += gen("call", grammar=CALL, captures=["tool", "args", "when"])
    s += "\nuse " + s.ref("tool") + s.ref("when") + " with " + s.ref("args") + "\n"
    s += gen("answer", max_tokens=1)
    return f"{s['tool']} {s['args'].city} {s['args'].days}"


def test_captures_are_variables_with_the_values_of_their_parts(backend: Backend) -> None:
    result = call.run(backend=backend, temperature=0)
    assert result.value == "weather Oslo 3"
    assert result["tool"] == "weather"
    assert result["args"] == Args("Oslo", 3)
    assert result["when"] is None
    assert result["call"] == TEXT
    assert result.text() == f"call?{TEXT}\nuse weather with {TEXT[8:-1]}\n"
    assert result.variables == ("call", "tool", "args", "when", "answer")
    assert [(w.variable, w.value) for w in result.outputs()][1:3] == [
        ("tool", "weather"),
        ("args", Args("Oslo", 3)),
    ]
    assert result.meta("tool").finish_reason == "stop"


def test_a_recorded_graph_submitted_whole_gives_the_same(backend: Backend) -> None:
    result = call.run(backend=backend, seed=1, temperature=0)
    again = run_graph(result.graph, backend=backend, seed=1, temperature=0)
    assert again.text() == result.text()
    assert again["args"] == result["args"]
    plain = run_graph(loads(dumps(result.graph)), backend=backend, seed=1, temperature=0)
    assert plain["args"] == {"city": "Oslo", "days": 3}  # the class stays with its process


def test_a_runtime_over_the_wire_gives_the_same(backend: Backend) -> None:
    runtime = Runtime(script=script(TEXT))
    remote = RemoteBackend(runtime.endpoint)
    try:
        result = call.run(backend=remote, seed=1, temperature=0)
        whole = run_graph(result.graph, backend=remote, seed=1, temperature=0)
    finally:
        remote.close()
        runtime.stop()
    assert result.value == "weather Oslo 3"
    assert whole.text() == result.text()
    assert result.text() == call.run(backend=backend, seed=1, temperature=0).text()


@function
def forked(s: State) -> list[str]:
    s += "call?"
    s += gen(grammar=CALL, captures=["tool"])
    forks = s.fork(2)
    forks += lambda i: f"{i}" + s.ref("tool") + "?"
    forks += gen("again", grammar=CALL, captures=["args"])
    forks += forks[0].ref("args")
    return [args.city for args in forks.join()["args"]]


def test_branches_wait_for_what_they_use_alone(backend: Backend) -> None:
    assert forked.run(backend=backend, temperature=0).value == ["Oslo", "Oslo"]


@function
def dated(s: State) -> None:
    s += "date?"
    s += gen("date", regex=r"(?P<day>\d+)\.(?P<month>\d+)?(?P<rest>.*)", captures=["day", "month"])
    s += "|" + s.ref("month") + "|" + s.ref("day")


def test_groups_of_a_regex_are_as_fullmatch_gives_them() -> None:
    result = run(dated, "14.")
    assert (result["day"], result["month"]) == ("14", None)
    assert result.text() == "date?14.||14"


LARK = """
    start: "call" NAME "(" [ARGS] ")"
    %declare ARGS
    NAME: /[a-z]+/
    %ignore " "
"""


@function
def larked(s: State) -> None:
    s += "call?"
    grammar = Grammar(lark=LARK, parts={"ARGS": Grammar(schema=Args)})
    s += gen(grammar=grammar, captures=["start", "NAME", "ARGS"])


def test_rules_terminals_and_parts_of_lark_are_captured() -> None:
    result = run(larked, 'call  ab ( {"city":"é"} )')
    assert result["NAME"] == "ab"
    assert result["ARGS"] == Args("é")
    assert result["start"] == 'call  ab ( {"city":"é"} )'


@function
def checked(s: State, captures: list[str]) -> None:
    s += "call?"
    grammar = Grammar(ebnf='root ::= "<" v ">"', parts={"v": Grammar(schema=EVEN)})
    s += gen("call", grammar=grammar, captures=captures)


@pytest.mark.parametrize("captures", [[], ["v"]])
def test_what_is_only_checked_of_a_part_is_validated(captures: list[str]) -> None:
    assert run(checked, "<[1,2]>", captures=captures)["call"] == "<[1,2]>"
    with pytest.raises(Invalid, match=r"part v: \$: \[1, 1\] has non-unique elements"):
        run(checked, "<[1,1]>", captures=captures)


@function
def misnamed(s: State, grammar: Any, captures: list[str]) -> None:
    s += "call?"
    s += gen("all", grammar=grammar, captures=captures)
    s += s.ref(captures[0])


@pytest.mark.parametrize(
    ("grammar", "name", "message"),
    [
        (CALL, "tol", r"no rule, terminal or part is named tol \(did you mean tool\?\)"),
        ('root ::= "a"', "a", "the names are root"),
        ('start: "a"', "B", "no rule, terminal or part is named B.*the names are A, start"),
        ("start: nowhere", "start", "nowhere"),
        (Grammar(ebnf="root ::= x", parts={"x": Grammar(schema={"type": "no"})}), "x", "part x: s"),
    ],
)
def test_a_name_that_the_grammar_does_not_have_is_refused(
    grammar: Any, name: str, message: str
) -> None:
    with pytest.raises(GrammarError, match=message):
        run(misnamed, "a", grammar=grammar, captures=[name])


@function
def failing(s: State) -> None:
    s += "call?"
    s += gen("x", grammar="start: (", captures=["start"])
    s += s.ref("start")


def test_a_bad_grammar_with_captures_fails_once_and_ends_the_run(backend: Backend) -> None:
    events: list[Event] = []
    with pytest.raises(GrammarError, match="lark"):
        events.extend(failing.stream(backend=backend))
    assert [(event.kind, event.variable) for event in events] == [("error", "x")]


@function
def joined(s: State) -> None:
    s += "call?"
    forks = s.fork(2)
    forks[0] += "a" * 100_000 + gen("x")  # past the context
    forks[1] += gen(grammar=CALL, captures=["tool"])
    forks[1] += forks[1].ref("tool") + gen("y", max_tokens=1)
    forks.join()


def test_a_join_that_fails_cancels_what_waits_for_a_capture() -> None:
    with pytest.raises(NodeError):
        run(joined, TEXT)
