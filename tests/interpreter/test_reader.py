"""Where and how often values are read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from plait import Grammar, State, function, gen
from plait.interpreter.backend import Done, Listener, NodeEvent, SessionConfig
from plait.interpreter.reader import Reader
from plait.lang.expr import Expr
from plait.lang.graph import Node
from plait.lang.ops import Gen
from plait.lang.tape import Tape

from .test_driver import FakeBackend, FakeSession, echo

WAIT_S = 10.0


@dataclass
class Slow:
    """A class whose instances are slow to make: they wait for `go`."""

    n: int

    made: ClassVar[int] = 0
    on: ClassVar[tuple[str, ...]] = ()  # the threads that made one
    begun: ClassVar[threading.Event] = threading.Event()
    go: ClassVar[threading.Event] = threading.Event()

    def __post_init__(self) -> None:
        Slow.made += 1
        Slow.on = (*Slow.on, threading.current_thread().name)
        Slow.begun.set()
        Slow.go.wait(WAIT_S)


@pytest.fixture(autouse=True)
def slow() -> Iterator[None]:
    Slow.made, Slow.on = 0, ()
    Slow.begun.clear()
    Slow.go.clear()
    yield
    Slow.go.set()


def slow_gen() -> Expr:
    grammar = Grammar(ebnf='root ::= "<" v ">"', parts={"v": Grammar(schema=Slow)})
    return gen("call", grammar=grammar, captures=["v"])


class LinkedSession(FakeSession):
    """A session whose answers come on the one thread that all sessions of a backend share."""

    def submit(self, nodes: Sequence[Node], known: Sequence[Done] = ()) -> None:
        assert isinstance(self.backend, LinkedBackend)
        self.segments.append(tuple(nodes))
        self.backend.link.submit(self._answer, tuple(nodes))


@dataclass
class LinkedBackend(FakeBackend):
    """A backend with one thread for the events of all sessions, as a runtime's link has."""

    link: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="link")
    )

    def open(
        self, config: SessionConfig, listener: Listener, on_lost: Callable[[Exception], None]
    ) -> FakeSession:
        return LinkedSession(self, config, listener, on_lost)


def answer(node: Node) -> NodeEvent | None:
    is_call = isinstance(node.op, Gen) and node.op.name == "call"
    return Done(node.id, '<{"n":1}>') if is_call else echo(node)


@pytest.fixture
def backend() -> Iterator[LinkedBackend]:
    linked = LinkedBackend(answer)
    yield linked
    Slow.go.set()
    linked.link.shutdown()


@function
def referring(s: State) -> str:
    s += slow_gen()
    s += s.ref("v") + gen("after")
    return str(s["after"])


@function
def plain(s: State) -> str:
    s += gen("x")
    return str(s["x"])


def test_a_slow_read_does_not_delay_another_session_s_event(backend: LinkedBackend) -> None:
    with ThreadPoolExecutor(2) as runs:
        try:
            first = runs.submit(lambda: referring.run(backend=backend).value)
            assert Slow.begun.wait(WAIT_S)
            other = runs.submit(lambda: plain.run(backend=backend).value)
            assert other.result(WAIT_S / 2) == "X"
            assert not first.done()
        finally:
            Slow.go.set()
        assert first.result(WAIT_S) == "AFTER"
    assert Slow.made == 1


def test_a_stream_s_values_are_read_by_its_consumer(backend: LinkedBackend) -> None:
    @function
    def typed(s: State) -> None:
        s += slow_gen() + gen("x")

    Slow.go.set()
    assert [event.value for event in typed.stream(backend=backend) if event.kind == "end"]
    assert Slow.made == 1
    assert not Slow.on[0].startswith("link")


def test_a_reference_is_sent_by_one_who_waits_for_something_else(backend: LinkedBackend) -> None:
    @function
    def threaded(s: State) -> list[str]:
        forks = s.fork(2)
        forks[0] += slow_gen()
        forks[0] += forks[0].ref("v") + gen("after")
        forks[1] += gen("x")
        with ThreadPoolExecutor(2) as readers:
            after = readers.submit(lambda: str(forks[0]["after"]))
            x = readers.submit(lambda: str(forks[1]["x"]))
            return [after.result(WAIT_S), x.result(WAIT_S)]

    Slow.go.set()
    for _ in range(20):
        assert threaded.run(backend=backend).value == ["AFTER", "X"]


def test_two_threads_read_a_value_once() -> None:
    tape = Tape()
    (op,) = slow_gen().parts
    assert isinstance(op, Gen)
    tape.append(op, prev=None)
    reader = Reader(tape)
    done = Done(0, '<{"n":1}>')
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(reader.values, done)
        assert Slow.begun.wait(WAIT_S)
        second = threads.submit(reader.values, done)
        time.sleep(0.05)
        Slow.go.set()
        assert first.result(WAIT_S) is second.result(WAIT_S)
    assert Slow.made == 1
