"""What waits for a capture on the client's side, and what does not."""

from __future__ import annotations

from dataclasses import dataclass, field

from plait.interpreter.backend import Done, Failed
from plait.interpreter.failures import Outcome
from plait.interpreter.outbox import Outbox
from plait.interpreter.values import Parsed, Values
from plait.lang.errors import Truncated
from plait.lang.graph import Node
from plait.lang.ops import Constraint, Gen, JsonSchema, Source, Text, Value

GEN = Node(0, Gen(constraint=Constraint(regex="(?P<x>a)"), captures=("x",)), None)
USE = Node(1, Value(Source(0, "x")), 0, (0,))
AFTER = Node(2, Gen("y"), 1)
COPY = Node(3, Value(Source(2)), None, (2,), "0.0")
OTHER = Node(4, Gen("z"), 0, (), "0.1")
ALL = (GEN, USE, AFTER, COPY, OTHER)
DONE = Done(0, "a")
READ = Values(Parsed("a"), {"x": Parsed("x")}, {"x": "x=a"})
CUT = Values(Parsed("a"), {"x": Parsed(fault=Truncated("it is cut"))})


@dataclass
class Desk:
    """An outbox, and what it is told of."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)
    values: dict[int, Values] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.outbox = Outbox(self.outcomes, self.values)
        self.release = self.outbox.release
        self.cancel = self.outbox.cancel

    def read(self, values: Values) -> None:
        """Finish the gen, and read it."""
        self.outcomes[0] = DONE
        assert self.outbox.unread() in ([DONE], [])
        self.values[0] = values
        assert self.outbox.unread() == []


def test_a_use_and_all_behind_it_wait_for_the_gen_and_nothing_else_does() -> None:
    desk = Desk()
    assert desk.release(ALL) == ([GEN, OTHER], [])
    assert desk.release() == ([], [])
    late = Node(5, Text("t"), 3, (), "0.0")
    assert desk.release([late]) == ([], [])
    desk.read(READ)
    text = Node(1, Text("x=a"), 0)
    assert desk.release() == ([text, AFTER, COPY, late], [])
    assert desk.release() == ([], [])


def test_what_is_done_waits_until_it_is_read() -> None:
    desk = Desk()
    desk.release([GEN, USE])
    assert desk.outbox.unread() == []
    desk.outcomes[0] = DONE
    assert desk.outbox.unread() == [DONE]
    assert desk.release() == ([], [])


def test_a_capture_that_is_known_is_sent_at_once() -> None:
    desk = Desk()
    desk.release([GEN])
    desk.read(READ)
    assert desk.release([USE]) == ([Node(1, Text("x=a"), 0)], [])


def test_a_capture_that_is_cut_fails_what_uses_it_and_all_behind_that() -> None:
    desk = Desk()
    desk.release(ALL)
    desk.read(CUT)
    sent, failed = desk.release()
    assert sent == []
    assert failed == [Failed(node, "truncated", "it is cut", 0) for node in (1, 2, 3)]
    late = Node(5, Text("t"), 3, (), "0.0")
    assert desk.release([late])[1] == [Failed(5, "truncated", "it is cut", 0)]


def test_of_a_gen_that_failed_the_backend_fails_the_uses() -> None:
    desk = Desk()
    desk.release([GEN, USE])
    desk.outcomes[0] = Failed(0, "internal", "m", 0)
    assert desk.outbox.unread() == []
    assert desk.release() == ([Node(1, Value(Source(0)), 0, (0,))], [])


def test_what_waits_can_be_cancelled_with_all_behind_it() -> None:
    desk = Desk()
    desk.release(ALL)
    message = "cancelled before it was done"
    assert desk.cancel([2]) == [Failed(n, "cancelled", message, 2) for n in (2, 3)]
    assert desk.cancel([2]) == []
    desk.read(READ)
    assert desk.release() == ([Node(1, Text("x=a"), 0)], [])


def test_a_constraint_that_is_none_is_not_sent_nor_is_what_follows_it() -> None:
    bad = Node(0, Gen(constraint=Constraint(schema=JsonSchema('{"type":"no"}'))), None)
    other, after = Node(1, Text("t"), None, (), "0.1"), Node(2, Text("t"), 0)
    sent, failed = Desk().release([bad, other, after])
    assert sent == [other]
    assert [(f.node, f.code, f.origin) for f in failed] == [
        (0, "bad_grammar", 0),
        (2, "bad_grammar", 0),
    ]
