"""Branches: what they inherit, and what a join gathers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from plait.lang.api import gen
from plait.lang.errors import (
    InvalidArgument,
    NodeError,
    UnknownVariable,
)
from plait.lang.state import State

Start: TypeAlias = Callable[..., tuple[State, Any]]


def ops(s: State) -> list[object]:
    return [node.op for node in s._tape.nodes]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_fork_is_the_same_for_any_number_of_branches(start: Start, n: int) -> None:
    s, _ = start()
    s += "P" + gen("a")
    branches = s.fork(n)  # the gen is still pending
    assert [b.text() for b in branches] == ["P[1]"] * n
    assert [b["a"] for b in branches] == ["[1]"] * n
    assert len(s._tape.nodes) == 2  # a fork records nothing


def test_a_fork_may_be_the_first_statement(start: Start) -> None:
    s, _ = start()
    forks = s.fork(2)
    forks += gen("x")
    assert forks.join()["x"] == ["[0]", "[0]"]
    assert s.fork(3).join() == {}


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", None, True])
def test_a_fork_needs_a_branch(start: Start, n: object) -> None:
    s, _ = start()
    with pytest.raises(InvalidArgument, match=r"fork\(.*\): .*n >= 1"):
        s.fork(n)  # type: ignore[arg-type]


def test_branches_have_paths(start: Start) -> None:
    s, _ = start()
    s.fork(2)
    branch = s.fork(3)[2]
    leaf = branch.copy()
    branch += "a"
    leaf += "b"
    assert [n.branch for n in s._tape.nodes] == ["1.2", "1.2/0.0"]
    assert [n.prev for n in s._tape.nodes] == [None, None]


def test_a_copy_goes_on_alone(start: Start) -> None:
    s, _ = start()
    s += "ab"
    with s.copy() as other:
        other += gen("x")
    assert other.text() == "ab[2]"
    assert s.text() == "ab"
    assert "x" not in s


def test_forks_broadcast_text_functions_and_lists(start: Start) -> None:
    s, _ = start()
    forks = s.fork(2)
    forks += "all "
    forks += lambda i: f"{i} " + gen("x")
    forks += ["left", "right"]
    forks[0] += "!"
    assert [b.text() for b in forks] == ["all 0 [6]left!", "all 1 [6]right"]
    assert len(forks) == 2
    assert forks[-1] is forks[1]
    assert list(forks[:1]) == [forks[0]]


def test_a_broadcast_is_appended_to_all_or_none(start: Start) -> None:
    s, _ = start()
    forks = s.fork(2)
    for wrong in (["a"], ["a", 3], 3, lambda i: None):
        with pytest.raises(InvalidArgument):
            forks += wrong  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="cannot be replaced"):
        forks[0] = s
    assert ops(s) == []


def test_what_a_branch_sets_stays_in_the_branch(start: Start) -> None:
    s, _ = start()
    s += gen("o")
    forks = s.fork(4)
    forks += lambda i: "x" * i + gen("o")
    joined = forks.join()
    assert joined["o"] == ["[3]", "[4]", "[5]", "[6]"] == [b["o"] for b in forks]
    assert s["o"] == "[0]"


def test_a_join_gives_the_parent_lists_and_a_later_one_replaces_them(start: Start) -> None:
    s, _ = start()
    for round_ in range(2):
        forks = s.fork(2)
        forks += ["x" * (i + 2 * round_) + gen("o") for i in range(2)]
        joined = forks.join()
        assert list(joined) == ["o"]
        assert list(s["o"]) == joined["o"]
    assert list(s["o"]) == ["[2]", "[3]"]
    assert s.copy()["o"] == s["o"]
    assert s.text() == ""
    with pytest.raises(InvalidArgument, match=r'forks\[i\].ref\("o"\)'):
        s.ref("o")
    s += gen("o")
    assert s["o"] == "[0]"


def test_a_join_has_a_place_for_each_branch(start: Start) -> None:
    s, _ = start()
    left, right = forks = s.fork(2)
    left += gen("a")
    right += gen("b")
    joined = forks.join()
    assert joined["a"] == ["[0]", None]
    assert joined["b"] == [None, "[0]"]
    with pytest.raises(UnknownVariable, match='no branch set "c"; the branches set: a, b'):
        joined["c"]


def test_a_join_waits_for_branches_of_branches(start: Start) -> None:
    s, driver = start()
    waited: list[int] = []
    driver.wait = waited.extend
    forks = s.fork(2)
    forks[0] += "a"
    leaf = forks[1].copy()
    leaf += gen("x")
    forks.join()
    assert waited == [0, 1]


def test_a_failed_branch_makes_the_join_raise_and_leaves_the_parent(start: Start) -> None:
    def say(prompt: str) -> str:
        if "bad" in prompt:
            raise NodeError("boom", node=3)
        return "ok"

    s, driver = start(say)
    s += gen("before")
    forks = s.fork(2)
    forks += ["good", "bad"]
    forks += gen("x")
    with pytest.raises(NodeError, match="boom"):
        forks.join()
    assert driver.cancelled == [1, 2, 3, 4]
    assert s.variables() == ("before",)
    assert s.text() == "ok"


def test_a_state_cannot_be_sent_to_another_process(start: Start) -> None:
    s, _ = start()
    with pytest.raises(TypeError, match="belongs to its running program"):
        s.__reduce__()


def test_sixteen_hundred_branches_are_recorded_at_once(start: Start) -> None:
    s, _ = start()
    forks = s.fork(1600)
    forks += gen("x")
    assert len(forks.join()["x"]) == 1600
