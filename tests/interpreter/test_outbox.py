"""What waits for a capture on the client's side, and what does not."""

from __future__ import annotations

from plait.interpreter.backend import Done, Failed
from plait.interpreter.failures import Outcome
from plait.interpreter.outbox import Outbox
from plait.lang.errors import Truncated
from plait.lang.graph import Node
from plait.lang.ops import Constraint, Gen, Source, Text, Value

GEN = Node(0, Gen(constraint=Constraint(regex="(?P<x>a)"), captures=("x",)), None)
USE = Node(1, Value(Source(0, "x")), 0, (0,))
AFTER = Node(2, Gen("y"), 1)
COPY = Node(3, Value(Source(2)), None, (2,), "0.0")
OTHER = Node(4, Gen("z"), 0, (), "0.1")
ALL = (GEN, USE, AFTER, COPY, OTHER)
DONE: dict[int, Outcome] = {0: Done(0, "a")}


def upper(done: Done, capture: str) -> str:
    return f"{capture}={done.text}"


def cut(done: Done, capture: str) -> str:
    raise Truncated("it is cut")


def test_a_use_and_all_behind_it_wait_for_the_gen_and_nothing_else_does() -> None:
    outbox = Outbox(upper)
    assert outbox.release(ALL, {}) == ([GEN, OTHER], [])
    assert outbox.release((), {}) == ([], [])
    late = Node(5, Text("t"), 3, (), "0.0")
    assert outbox.release([late], {}) == ([], [])
    text = Node(1, Text("x=a"), 0)
    assert outbox.release((), DONE) == ([text, AFTER, COPY, late], [])
    assert outbox.release((), DONE) == ([], [])


def test_a_capture_that_is_known_is_sent_at_once() -> None:
    outbox = Outbox(upper)
    outbox.release([GEN], {})
    assert outbox.release([USE], DONE) == ([Node(1, Text("x=a"), 0)], [])


def test_a_capture_that_is_cut_fails_what_uses_it_and_all_behind_that() -> None:
    outbox = Outbox(cut)
    outbox.release(ALL, {})
    sent, failed = outbox.release((), DONE)
    assert sent == []
    assert failed == [Failed(node, "truncated", "it is cut", 0) for node in (1, 2, 3)]
    late = Node(5, Text("t"), 3, (), "0.0")
    assert outbox.release([late], DONE)[1] == [Failed(5, "truncated", "it is cut", 0)]


def test_of_a_gen_that_failed_the_backend_fails_the_uses() -> None:
    outbox = Outbox(upper)
    outbox.release([GEN, USE], {})
    sent, failed = outbox.release((), {0: Failed(0, "internal", "m", 0)})
    assert (sent, failed) == ([Node(1, Value(Source(0)), 0, (0,))], [])


def test_what_waits_can_be_cancelled_with_all_behind_it() -> None:
    outbox = Outbox(upper)
    outbox.release(ALL, {})
    message = "cancelled before it was done"
    assert outbox.cancel([2]) == [Failed(n, "cancelled", message, 2) for n in (2, 3)]
    assert outbox.cancel([2]) == []
    assert outbox.release((), DONE) == ([Node(1, Text("x=a"), 0)], [])
