"""States: what is appended, and what is read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

import pytest

from plait.lang.api import gen, select, user
from plait.lang.errors import (
    InvalidArgument,
    ProgramError,
    UnknownVariable,
)
from plait.lang.expr import Expr
from plait.lang.ops import Gen, Source, Text, Value
from plait.lang.state import State

Start: TypeAlias = Callable[..., tuple[State, Any]]


def ops(s: State) -> list[object]:
    return [node.op for node in s._tape.nodes]


# Appending


def test_appending_records_and_waits_for_nothing(start: Start) -> None:
    s, driver = start()
    s += "a" + gen("x") + "b"
    s += gen() + "c"
    assert ops(s) == [Text("a"), Gen("x"), Text("b"), Gen(), Text("c")]
    assert [n.prev for n in s._tape.nodes] == [None, 0, 1, 2, 3]
    assert driver.num_waits == 0


def test_appending_the_empty_text_records_nothing(start: Start) -> None:
    s, _ = start()
    s += ""
    assert ops(s) == []


def test_a_node_knows_the_authors_line(start: Start) -> None:
    s, _ = start()
    s += "a"
    where = s._tape.nodes[0].where
    assert where is not None
    assert where.file == __file__
    assert (
        str(where)
        == f"test_state.py:{test_a_node_knows_the_authors_line.__code__.co_firstlineno + 2}"
    )


@pytest.mark.parametrize(
    "text", ['{"a": {}} {question} {0} %s $x {{y}}', "\n\t\0\x7f", "日本語 🙂 é", " "]
)
def test_text_arrives_byte_for_byte(start: Start, text: str) -> None:
    s, _ = start()
    s += text
    s += user(text)
    assert s._tape.nodes[0].op == s._tape.nodes[2].op == Text(text)
    assert s.messages() == [{"role": "user", "content": text}]


def test_a_str_enum_is_appended_by_its_content(start: Start) -> None:
    class Colour(str, Enum):  # noqa: UP042 - what authors of older code pass
        RED = "red"

    s, _ = start()
    s += Colour.RED
    assert type(s._tape.nodes[0].op) is Text
    assert s.text() == "red"


@pytest.mark.parametrize("wrong", [3, None, 2.5, b"x", ["a"], object(), True])
def test_appending_what_is_not_text_says_what_to_write(start: Start, wrong: object) -> None:
    s, _ = start()
    with pytest.raises(InvalidArgument, match=r"test_state.py:\d+: cannot append"):
        s += wrong  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="cannot append"):
        s += gen("x") + wrong  # type: ignore[operator]
    with pytest.raises(InvalidArgument, match="cannot append"):
        s.user(wrong)  # type: ignore[call-overload]
    assert ops(s) == []


def test_appending_a_number_says_to_pass_str(start: Start) -> None:
    s, _ = start()
    with pytest.raises(InvalidArgument, match=r"pass str\(3\)"):
        s += 3  # type: ignore[arg-type]


def test_a_lone_surrogate_is_refused(start: Start) -> None:
    s, _ = start()
    with pytest.raises(InvalidArgument, match="surrogate at position 1"):
        s += "a\ud800"


@pytest.mark.parametrize(
    ("make", "spelling"),
    [
        (lambda s: gen("x"), 'gen("x")'),
        (lambda s: "a" + gen(), "gen()"),
        (lambda s: select("y", ["a"]), 'select("y", ...)'),
        (lambda s: user("hello"), "user(...)"),
        (lambda s: s.ref("known"), 's.ref("known")'),
    ],
)
def test_an_expression_in_a_string_raises_and_shows_what_to_write(
    start: Start, make: Callable[[State], Expr], spelling: str
) -> None:
    s, _ = start()
    s += gen("known")
    expr = make(s)
    uses: list[Callable[[], str]] = [lambda: f"ask {expr}", lambda: str(expr), lambda: f"{expr:>9}"]
    for use in uses:
        with pytest.raises(TypeError) as caught:
            use()
        assert str(caught.value).endswith(f's += "ask " + {spelling}')
        assert "test_state.py:" in str(caught.value)


def test_two_threads_append_whole_statements(start: Start) -> None:
    s, _ = start()

    def write(letter: str) -> None:
        nonlocal s
        for _ in range(200):
            s += letter + gen() + letter

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    nodes = s._tape.nodes
    assert [n.prev for n in nodes] == [None, *range(len(nodes) - 1)]
    for first, middle, last in zip(nodes[::3], nodes[1::3], nodes[2::3], strict=True):
        assert first.op == last.op
        assert middle.op == Gen()


def test_after_the_run_appending_raises_and_reading_works(start: Start) -> None:
    s, _ = start()
    s += gen("x")
    assert s["x"] == "[0]"
    s._tape.close()
    with pytest.raises(ProgramError, match=r"test_state.py:\d+: this run is finished"):
        s += "more"
    assert s["x"] == "[0]"


def test_a_run_that_ends_inside_a_turn_shows_what_ended_it(start: Start) -> None:
    s, _ = start()
    with pytest.raises(ValueError, match="mine"):
        close_inside_turn(s)


def close_inside_turn(s: State) -> None:
    with s.user():
        s._tape.close()
        raise ValueError("mine")


# Variables


def test_a_variable_is_a_real_str(start: Start) -> None:
    s, _ = start()
    s += "abc" + gen("x") + "|" + select("y", ["one", "two"])
    assert s["x"] == "[3]"
    assert type(s["x"]) is str
    assert s["y"] == "one"
    assert f"v={s['x']}" == "v=[3]"
    assert s.variables() == ("x", "y")
    assert "x" in s
    assert "z" not in s


def test_an_unknown_name_lists_the_known_ones(start: Start) -> None:
    s, driver = start()
    with pytest.raises(UnknownVariable, match=r'test_state.py:\d+: no variable "x"; known: none'):
        s["x"]
    s += gen("a") + gen("b")
    for read in (s.__getitem__, s.ref, s.meta):
        with pytest.raises(KeyError, match='no variable "x"; known: a, b'):
            read("x")
    assert driver.num_waits == 0


def test_an_unnamed_gen_sets_no_variable(start: Start) -> None:
    s, _ = start()
    s += gen() + gen()
    assert s.variables() == ()


def test_a_name_used_again_overwrites(start: Start) -> None:
    s, _ = start()
    s += gen("x") + "12345"
    first = s["x"]
    s += gen("x")
    assert (first, s["x"]) == ("[0]", "[8]")


def test_a_ref_stays_in_the_graph_and_works_in_any_branch(start: Start) -> None:
    s, driver = start()
    left, right = s.fork(2)
    left += "abc" + gen("x")
    right += "you said " + left.ref("x") + "!"
    assert driver.num_waits == 0
    node = right._tape.nodes[3]
    assert (node.op, node.reads, node.branch) == (Value(Source(1)), (1,), "0.1")
    assert right.text() == "you said [3]!"


def test_a_ref_of_another_run_is_refused(start: Start) -> None:
    (s, _), (other, _) = start(), start()
    other += gen("x")
    with pytest.raises(InvalidArgument, match='"x" belongs to another run'):
        s += "a" + other.ref("x")
    assert ops(s) == []
