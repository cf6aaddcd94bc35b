"""Captures end to end: values, references, cuts, bad names, other backends' ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
    Truncated,
    function,
    gen,
    run_graph,
)
from plait.interpreter.backends.remote import RemoteBackend
from plait.lang.serialize import dumps, loads

from .test_remote_backend import Runtime


@dataclass
class Args:
    """The arguments of a call."""

    city: str
    days: int = 1


EVEN = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
CALL = Grammar(
    ebnf='root ::= tool "(" args ")" when?',
    parts={
        "tool": Grammar(choices=["weather", "time"]),
        "args": Grammar(schema=Args),
        "when": Grammar(regex=r" at \d+"),
    },
)
TEXT = 'weather({"city":"Oslo","days":3})'


def script(text: str) -> Callable[[str], str]:
    return lambda prompt: text if prompt.endswith("?") else ""


@pytest.fixture
def backend() -> Iterator[Backend]:
    opened = plait.scripted(script(TEXT))
    yield opened
    opened.close()


def run(program: Any, text: str, **arguments: Any) -> plait.Result:
    opened = plait.scripted(script(text))
    try:
        result: plait.Result = program.run(**arguments, backend=opened, temperature=0)
    finally:
        opened.close()
    return result


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
def cut(s: State, options: dict[str, Any]) -> str:
    s += "call?"
    s += gen("call", grammar=CALL, captures=["tool", "args"], **options)
    return str(s["tool"])


def test_a_cut_call_is_truncated_where_a_capture_is_read() -> None:
    with pytest.raises(Truncated, match=r"the capture tool is not whole: cut by max_tokens"):
        run(cut, TEXT, options={"max_tokens": 12})
    with pytest.raises(Invalid, match=r"the capture tool is not valid: cut by the stop string ':'"):
        run(cut, TEXT, options={"stop": ":"})


def test_a_call_that_could_go_on_is_not_whole_at_the_limit() -> None:
    length = len(TEXT)
    with pytest.raises(Truncated):  # " at 7" could follow
        run(cut, TEXT + " at 7", options={"max_tokens": length})


@function
def whole(s: State) -> str:
    s += "call?"
    s += gen(regex="(?P<x>[ab]{3})(?P<y>c*)", captures=["x", "y"], max_tokens=4)
    return f"{s['x']}{s['y']}"


def test_a_group_at_the_limit_is_whole_where_nothing_can_follow() -> None:
    with pytest.raises(Truncated):
        run(whole, "abacc")
    assert run(whole, "aba").value == "aba"


@function
def referred(s: State) -> None:
    s += "call?"
    s += gen("call", grammar=CALL, captures=["tool"], max_tokens=5)
    s += s.ref("tool") + gen("more", max_tokens=1)


def test_a_reference_to_a_capture_that_is_cut_fails_as_its_gen() -> None:
    with pytest.raises(Truncated, match=r'test_captures\.py:\d+: gen\("call"\): the capture tool'):
        run(referred, TEXT)


@function
def survived(s: State) -> str:
    s += "call?"
    s += gen("call", grammar=CALL, captures=["tool"], max_tokens=5)
    try:
        return str(s["tool"])
    except Truncated as error:
        return error.text


def test_a_cut_that_is_handled_is_no_failure_of_the_run() -> None:
    assert run(survived, TEXT).value == TEXT[:5]


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


@function
def worded(s: State, regex: str, options: dict[str, Any]) -> str:
    s += "call?"
    s += gen("all", regex=regex, captures=["w"], **options)
    return str(s["w"])


BACKTRACKS = r"(?P<w>(?:[a-z]+ ?)+)\."


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("options", "error"), [({"max_tokens": 44}, Truncated), ({"stop": "z"}, Invalid)]
)
def test_a_cut_text_on_which_re_would_backtrack_is_told_at_once(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match="the capture w is not"):
        run(worded, "a" * 60 + "z.", regex=BACKTRACKS, options=options)
    assert run(worded, "a" * 60 + ".", regex=BACKTRACKS, options={}).value == "a" * 60


def test_a_text_that_is_whole_but_could_go_on_asks_for_a_stop_string() -> None:
    reason = r"the capture w may go on: the text is whole but could go on.*; give a stop string"
    with pytest.raises(Truncated, match=reason):
        run(worded, "aaaa", regex="(?P<w>a+)", options={"max_tokens": 3})
    with pytest.raises(Truncated, match=reason.replace(" w ", " tool ")):
        run(cut, TEXT + " at 7", options={"max_tokens": len(TEXT)})
    assert run(worded, "aaa\n", regex="(?P<w>a+)", options={"stop": "\n"}).value == "aaa"
