"""Turns: three ways to write one, and what closes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from plait.lang.api import assistant, gen, system, user
from plait.lang.errors import (
    RoleError,
)
from plait.lang.ops import Gen, RoleBegin, RoleEnd, Text
from plait.lang.state import State

Start: TypeAlias = Callable[..., tuple[State, Any]]


def ops(s: State) -> list[object]:
    return [node.op for node in s._tape.nodes]


def test_the_three_ways_to_write_a_turn_record_the_same(start: Start) -> None:
    recorded: list[list[object]] = []
    s, _ = start()
    s += user("a" + gen("x"))
    recorded.append(ops(s))
    s, _ = start()
    s.user("a" + gen("x"))
    recorded.append(ops(s))
    s, _ = start()
    with s.user() as same:
        assert same is s
        s += "a" + gen("x")
    recorded.append(ops(s))
    expected = [RoleBegin("user"), Text("a"), Gen("x"), RoleEnd("user")]
    assert recorded == [expected] * 3


def test_messages_are_the_turns_and_text_is_everything(start: Start) -> None:
    s, _ = start()
    s += "before"
    s += system("be brief") + user("hi")
    with s.assistant():
        s += "well, " + gen("x")
        talk = s.messages()
    assert talk == s.messages()
    assert talk[:2] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
    ]
    assert talk[2] == {"role": "assistant", "content": f"well, {s['x']}"}
    assert s.text() == f"before<system>be brief</><user>hi</><assistant>well, {s['x']}</>"


def fail_inside_turn(s: State) -> None:
    with s.user():
        s += "hello"
        raise ValueError("mine")


def test_an_exception_closes_the_turn_on_its_way_out(start: Start) -> None:
    s, _ = start()
    with pytest.raises(ValueError, match="mine"):
        fail_inside_turn(s)
    with s.assistant():
        s += gen("a")
    assert s.messages() == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": s["a"]},
    ]


@pytest.mark.parametrize(
    "nest",
    [
        lambda s: s.assistant().__enter__(),
        lambda s: s.user("again"),
        lambda s: s.__iadd__("x" + assistant("again")),
    ],
)
def test_nested_turns_raise_in_the_authors_frame(
    start: Start, nest: Callable[[State], object]
) -> None:
    s, _ = start()
    with s.user():
        with pytest.raises(RoleError, match=r"test_turns.py:\d+: .* inside an open user turn"):
            nest(s)
        s += "still fine"
    assert ops(s) == [RoleBegin("user"), Text("still fine"), RoleEnd("user")]


def test_a_turn_inside_a_turn_expression_raises_when_it_is_built() -> None:
    with pytest.raises(RoleError, match="cannot stand inside a turn"):
        user("a" + assistant("b"))


def test_a_fork_inside_a_turn_inherits_the_open_turn(start: Start) -> None:
    s, _ = start()
    s += user("Parent ")
    with s.assistant():
        one = s.fork(1)[0]
        one += "Child"
        one.end_turn()
        left, right = s.fork(2)
        left += "Left"
        s += "Own"
    talk = [{"role": "user", "content": "Parent "}]
    assert one.messages() == [*talk, {"role": "assistant", "content": "Child"}]
    assert left.messages() == [*talk, {"role": "assistant", "content": "Left"}]
    assert right.messages() == [*talk, {"role": "assistant", "content": ""}]
    assert s.messages() == [*talk, {"role": "assistant", "content": "Own"}]
    one += user("next")
    with pytest.raises(RoleError, match="inside an open assistant turn"):
        left += user("next")


def test_ending_a_turn_where_none_is_open_raises(start: Start) -> None:
    s, _ = start()
    with pytest.raises(RoleError, match="no turn is open"):
        s.end_turn()
    with s.user():
        s.end_turn()  # the block finds its turn closed, and leaves the next one alone
        s += assistant("x")
    assert ops(s).count(RoleEnd("user")) == 1
