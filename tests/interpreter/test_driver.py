"""The driver against a backend that answers as each test says: order, failures, loss."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from plait import Cancelled, InvalidArgument, NodeError, ProgramError, State, function, gen
from plait.interpreter.backend import (
    Capabilities,
    Done,
    Failed,
    Listener,
    NodeEvent,
    SessionConfig,
)
from plait.lang.errors import BackendDied
from plait.lang.graph import Node
from plait.lang.ops import Gen, Text

Answer = Callable[[Node], NodeEvent | None]


def echo(node: Node) -> NodeEvent | None:
    """Finish every node at once: a gen says its own name in capitals."""
    match node.op:
        case Gen(name=name):
            return Done(node.id, str(name).upper())
        case Text(text=text):
            return Done(node.id, text)
        case _:
            return Done(node.id, "")


@dataclass
class FakeSession:
    """Records what it is asked, and answers on a thread of its own."""

    backend: FakeBackend
    config: SessionConfig
    listener: Listener
    on_lost: Callable[[Exception], None]
    segments: list[tuple[Node, ...]] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    is_closed: bool = False

    def submit(self, nodes: Sequence[Node], known: Sequence[Done] = ()) -> None:
        self.segments.append(tuple(nodes))
        threading.Thread(target=self._answer, args=(tuple(nodes),)).start()

    def _answer(self, nodes: tuple[Node, ...]) -> None:
        time.sleep(self.backend.delay_s)
        events = [event for node in nodes if (event := self.backend.answer(node)) is not None]
        if events:
            self.listener(events)

    def cancel(self, nodes: Sequence[int]) -> None:
        self.cancelled += nodes
        events = [Failed(node, "cancelled", "cancelled", node) for node in nodes]
        threading.Thread(target=self.listener, args=(events,)).start()

    def close(self) -> None:
        self.is_closed = True


@dataclass
class FakeBackend:
    """A backend whose answers are a function of the node; None keeps the node open."""

    answer: Answer = echo
    delay_s: float = 0.0
    sessions: list[FakeSession] = field(default_factory=list)

    def capabilities(self) -> Capabilities:
        return Capabilities("fake", 1024, False)

    def open(
        self, config: SessionConfig, listener: Listener, on_lost: Callable[[Exception], None]
    ) -> FakeSession:
        session = FakeSession(self, config, listener, on_lost)
        self.sessions.append(session)
        return session

    def close(self) -> None:
        for session in self.sessions:
            session.on_lost(RuntimeError("closed"))


def failing(name: str, code: str = "pool_exceeded") -> Answer:
    """Give answers like `echo`, but the gen of this name fails, and what comes after it too."""
    failed: list[int] = []

    def answer(node: Node) -> NodeEvent | None:
        if isinstance(node.op, Gen) and node.op.name == name:
            failed.append(node.id)
            return Failed(node.id, code, "9 blocks, the pool has 4", node.id)
        if failed and (node.prev in failed or set(node.reads) & set(failed)):
            failed.append(node.id)
            return Failed(node.id, code, "depends on it", failed[0])
        return echo(node)

    return answer


@function
def two(s: State) -> str:
    s += "a: " + gen("a")
    s += " b: " + gen("b")
    return str(s["b"])


def test_a_body_without_breaks_is_one_segment() -> None:
    @function
    def static(s: State) -> None:
        s += "a: " + gen("a")
        s += " b: " + s.ref("a") + gen("b")

    backend = FakeBackend()
    result = static.run(backend=backend)
    assert result["b"] == "B"
    assert len(backend.sessions[0].segments) == 1
    assert backend.sessions[0].is_closed


def test_reading_a_value_submits_what_is_there() -> None:
    @function
    def breaks(s: State) -> str:
        s += gen("a")
        first = s["a"]
        s += gen("b")
        return str(first + s["b"] + s["a"])

    backend = FakeBackend()
    assert breaks.run(backend=backend).value == "ABA"
    assert [len(segment) for segment in backend.sessions[0].segments] == [1, 1]


def test_a_failure_names_the_gen_its_line_and_where_it_began() -> None:
    with pytest.raises(NodeError) as caught:
        two.run(backend=FakeBackend(failing("a")))
    message = str(caught.value)
    assert 'gen("b") cannot run, because of' in message
    assert 'gen("a"): 9 blocks' in message
    assert message.count("test_driver.py:") == 2
    assert caught.value.code == "pool_exceeded"
    assert caught.value.origin == 1


def test_an_unread_failure_is_raised_at_the_end() -> None:
    @function
    def unread(s: State) -> str:
        s += "x" + gen("a") + gen("b")
        return "done"

    with pytest.raises(NodeError, match=r"gen.*: 9 blocks"):
        unread.run(backend=FakeBackend(failing("a")))


def test_a_handled_failure_is_not_raised_again() -> None:
    @function
    def handles(s: State) -> str:
        branch = s.fork(1)[0]
        branch += gen("a") + gen("c")
        try:
            return str(branch["a"])
        except NodeError:
            s += gen("b")
            return "other"

    result = handles.run(backend=FakeBackend(failing("a")))
    assert (result.value, result["b"]) == ("other", "B")
    with pytest.raises(NodeError):
        result["a"]


def test_a_join_raises_the_first_failure_and_cancels_the_siblings() -> None:
    def answer(node: Node) -> NodeEvent | None:
        if node.branch == "0.2":
            return Failed(node.id, "internal", "boom", node.id)
        return echo(node) if node.branch != "0.1" else None

    seen: list[State] = []

    @function
    def joins(s: State) -> str:
        forks = s.fork(3)
        forks += gen("o")
        seen.extend(forks)
        with pytest.raises(NodeError, match="boom"):
            forks.join()
        s += "on " + gen("p")
        return str(s["p"])

    backend = FakeBackend(answer)
    assert joins.run(backend=backend).value == "P"
    assert backend.sessions[0].cancelled == [1]
    assert seen[0]["o"] == "O"
    with pytest.raises(Cancelled):
        seen[1]["o"]


@pytest.mark.parametrize("method", ["run", "batch"])
def test_a_lost_backend_is_an_error_for_every_waiter(method: str) -> None:
    backend = FakeBackend(lambda node: None)
    timer = threading.Timer(0.1, backend.close)
    timer.start()
    if method == "run":
        with pytest.raises(BackendDied, match="closed"):
            two.run(backend=backend)
    else:
        results = two.run_batch([{}] * 5, backend=backend)
        assert [type(result.error) for result in results] == [BackendDied] * 5
    timer.join()
    assert all(session.is_closed for session in backend.sessions)


def test_the_authors_exception_comes_out_itself_and_stops_the_run() -> None:
    mine = ValueError("mine")

    @function
    def raises(s: State) -> None:
        s += gen("a")
        raise mine

    backend = FakeBackend(lambda node: None)
    with pytest.raises(ValueError, match="mine") as caught:
        raises.run(backend=backend)
    assert caught.value is mine
    assert backend.sessions[0].is_closed


def test_a_state_is_read_only_after_its_run() -> None:
    @function
    def leaks(s: State) -> State:
        s += gen("a")
        return s

    state = leaks.run(backend=FakeBackend()).value
    assert state["a"] == "A"
    with pytest.raises(ProgramError, match="finished"):
        state += "more"


def test_two_threads_may_wait_on_one_state() -> None:
    @function
    def threaded(s: State) -> list[str]:
        s += gen("a") + gen("b")
        read: dict[str, str] = {}
        threads = [threading.Thread(target=lambda n=n: read.update({n: s[n]})) for n in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [read["a"], read["b"]]

    assert threaded.run(backend=FakeBackend(delay_s=0.05)).value == ["A", "B"]


def test_seeds_and_sampling_reach_the_session() -> None:
    backend = FakeBackend()
    program = two.options(backend=backend, max_tokens=5, temperature=0.5)
    program.run(seed=0, temperature=0)
    program.run_batch([{}, {}], seed=7)
    program.run()
    program.run()
    configs = [session.config for session in backend.sessions]
    assert (configs[0].seed, configs[0].sampling.temperature) == (0, 0)
    assert configs[0].sampling.max_tokens == 5
    assert configs[1].seed == 7
    assert len({config.seed for config in configs}) == 5
    assert len({config.id for config in configs}) == 5


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"temprature": 1}, "temperature"),
        ({"temperature": -1}, "temperature"),
        ({"seed": -1}, "seed"),
        ({"seed": "1"}, "seed"),
        ({"top_p": 0}, "top_p"),
    ],
)
def test_options_without_meaning_are_refused_by_name(options: dict[str, object], part: str) -> None:
    with pytest.raises(InvalidArgument, match=part):
        two.options(**options)
