"""Diffs: which nodes differ between two versions of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from plait.lang.api import gen, user
from plait.lang.diff import Change, Diff, diff
from plait.lang.graph import Graph, Node
from plait.lang.ops import Gen, Text
from plait.lang.program import Program
from plait.lang.state import State

LONG = "Read the letter with care, and say in a word what it is about. "


def trace(body: Callable[..., object]) -> Graph:
    return Program(body).trace()


def old(s: State, letter: str) -> None:
    s += user(LONG + letter)
    s += gen("topic", max_tokens=4)
    forks = s.fork(2)
    forks += lambda i: f"{i}: " + gen("reason", max_tokens=8)
    s += "It is about " + s.ref("topic")


def lines(found: Diff) -> list[str]:
    """The lines of a diff without their places."""
    return [line.rpartition("  ")[0] or line for line in str(found).splitlines()]


def test_a_graph_does_not_differ_from_itself() -> None:
    found = diff(trace(old), trace(old))
    assert not found
    assert str(found) == ""


def test_names_and_lines_do_not_count() -> None:
    graph = trace(old)
    nodes = tuple(replace(node, where=None) for node in graph.nodes)
    assert not diff(graph, replace(graph, program="other", nodes=nodes))


def test_a_changed_option_is_one_change_with_both_lines() -> None:
    def new(s: State, letter: str) -> None:
        s += user(LONG + letter)
        s += gen("topic", max_tokens=5)
        forks = s.fork(2)
        forks += lambda i: f"{i}: " + gen("reason", max_tokens=8)
        s += "It is about " + s.ref("topic")

    found = diff(trace(old), trace(new))
    (change,) = found.changes
    assert change.old is not None
    assert change.new is not None
    assert str(change.old.where).startswith("test_diff.py:")
    assert lines(found) == ["- gen topic max_tokens=4", "+ gen topic max_tokens=5"]
    assert found.notes == ()


def test_an_added_node_leaves_the_others_alone() -> None:
    def new(s: State, letter: str) -> None:
        s += user(LONG + letter)
        s += gen("tone", max_tokens=4)
        s += gen("topic", max_tokens=4)
        forks = s.fork(2)
        forks += lambda i: f"{i}: " + gen("reason", max_tokens=8)
        s += "It is about " + s.ref("topic")

    assert lines(diff(trace(old), trace(new))) == ["+ gen tone max_tokens=4"]
    assert lines(diff(trace(new), trace(old))) == ["- gen tone max_tokens=4"]


def test_of_a_long_text_the_part_that_differs_is_shown() -> None:
    def new(s: State, letter: str) -> None:
        s += user(LONG.replace("about", "good for") + letter)
        s += gen("topic", max_tokens=4)
        forks = s.fork(2)
        forks += lambda i: f"{i}: " + gen("reason", max_tokens=8)
        s += "It is about " + s.ref("topic")

    first, second = lines(diff(trace(old), trace(new)))
    assert first.startswith("- text ...")
    assert "what it is about." in first
    assert "what it is good for." in second


def test_a_wider_fork_and_another_input_are_told() -> None:
    def new(s: State, mail: str) -> None:
        s += user(LONG + mail)
        s += gen("topic", max_tokens=4)
        forks = s.fork(3)
        forks += lambda i: f"{i}: " + gen("reason", max_tokens=8)
        s += "It is about " + s.ref("topic")

    found = diff(trace(old), trace(new))
    assert found.notes == ("- input letter", "+ input mail", "fork 0: 2 branches became 3")
    assert lines(found)[:4] == [
        *("- input letter", "+ input mail"),
        *('+ [0.2] text "2: "', "+ [0.2] gen reason max_tokens=8"),
    ]


def test_the_same_nodes_after_another_one_differ() -> None:
    apart = (Node(0, Text("a"), None), Node(1, Text("b"), 0), Node(2, Gen("x"), 0))
    found = diff(Graph("g", apart), Graph("g", (*apart[:2], replace(apart[2], prev=1))))
    assert found
    assert found.notes == ("the body: gen x continues another node",)


ops = st.sampled_from([Text("a"), Text("b"), Gen("x"), Gen("y")])


def chain(steps: Sequence[Text | Gen]) -> Graph:
    return Graph("g", tuple(Node(i, op, i - 1 if i else None) for i, op in enumerate(steps)))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(ops, max_size=8), st.lists(ops, max_size=8))
def test_applying_a_diff_gives_the_other_graph(before: list[Text], after: list[Text]) -> None:
    found = diff(chain(before), chain(after))
    assert bool(found) == (before != after)
    removed = {change.old.id for change in found.changes if change.old is not None}
    added = {change.new.id: change.new.op for change in found.changes if change.new is not None}
    kept = iter([op for i, op in enumerate(before) if i not in removed])
    made = [added[i] if i in added else next(kept) for i in range(len(after))]
    assert made == after
    assert next(kept, None) is None


def test_a_change_of_one_side_is_one_line() -> None:
    assert str(Change(None, Node(0, Text("a"), None))) == '+ text "a"'
    assert str(Change(Node(0, Text("a"), None, branch="0.1"), None)) == '- [0.1] text "a"'
