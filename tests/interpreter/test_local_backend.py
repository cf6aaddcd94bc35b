"""The local backend: threads, sessions, and the end of both."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from plait.interpreter.backend import Backend, Done, NodeEvent, SessionConfig
from plait.interpreter.backends.local import LocalBackend
from plait.lang.errors import BackendDied, BackendUnavailable
from plait.lang.graph import Node
from plait.lang.ops import Gen, Sampling, Text
from plait.runtime.config import EngineConfig
from plait.runtime.model.scripted import scripted_model

ENDLESS = [Node(0, Gen("x", Sampling(ignore_eos=True, max_tokens=8000)), None)]


@pytest.fixture
def backend() -> Iterator[LocalBackend]:
    backend = LocalBackend(scripted_model(lambda text: "ok"), EngineConfig())
    yield backend
    backend.close()


def ignore(error: Exception) -> None:
    """Take a loss that the test does not expect."""
    raise AssertionError(error)


def test_it_says_what_its_model_can_do(backend: LocalBackend) -> None:
    seam: Backend = backend
    capabilities = seam.capabilities()
    assert capabilities.model == "scripted"
    assert (capabilities.max_context, capabilities.has_chat_template) == (8192, True)


def test_close_tells_open_runs_once_and_joins_the_threads() -> None:
    num_threads = threading.active_count()
    backend = LocalBackend(scripted_model(lambda text: "ok"), EngineConfig())
    lost: list[Exception] = []
    events: list[NodeEvent] = []
    session = backend.open(SessionConfig("open", seed=1), events.extend, lost.append)
    closed = backend.open(SessionConfig("closed", seed=1), events.extend, ignore)
    session.submit(ENDLESS)
    closed.close()
    started = time.monotonic()
    backend.close()
    backend.close()
    assert time.monotonic() - started < 1.0
    assert threading.active_count() == num_threads
    assert [type(error) for error in lost] == [BackendDied]
    assert not any(isinstance(event, Done) for event in events)
    session.submit(ENDLESS)
    session.cancel([0])
    session.close()
    with pytest.raises(BackendUnavailable, match="closed"):
        backend.open(SessionConfig("late", seed=1), events.extend, ignore)


def test_a_listener_that_raises_loses_its_run_and_no_other(backend: LocalBackend) -> None:
    lost: list[Exception] = []
    done = threading.Event()

    def fail(events: Sequence[NodeEvent]) -> None:
        raise ValueError("a bug in the run")

    backend.open(SessionConfig("bad", seed=1), fail, lost.append).submit([Node(0, Text("a"), None)])

    def listen(events: Sequence[NodeEvent]) -> None:
        if any(isinstance(event, Done) for event in events):
            done.set()

    good = backend.open(SessionConfig("good", seed=1), listen, ignore)
    good.submit([Node(0, Gen("x", Sampling(temperature=0.0)), None)])
    assert done.wait(5)
    good.close()
    assert [str(error) for error in lost] == ["a bug in the run"]


def test_sessions_are_used_from_many_threads_at_once(backend: LocalBackend) -> None:
    ends: list[NodeEvent] = []
    done = threading.Event()

    def listen(events: Sequence[NodeEvent]) -> None:
        ends.extend(event for event in events if isinstance(event, Done))
        if len(ends) == 8 * 25:
            done.set()

    session = backend.open(SessionConfig("shared", seed=1), listen, ignore)

    def submit(first: int) -> None:
        for i in range(25):
            session.submit([Node(first * 25 + i, Gen("x", Sampling(max_tokens=2)), None)])

    threads = [threading.Thread(target=submit, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done.wait(10)
    session.close()


def test_an_engine_that_dies_loses_its_runs_instead_of_hanging_them() -> None:
    def die(text: str) -> str:
        raise SystemExit("the script ends")

    lost: list[Exception] = []
    is_lost = threading.Event()

    def on_lost(error: Exception) -> None:
        lost.append(error)
        is_lost.set()

    backend = LocalBackend(scripted_model(die), EngineConfig())
    session = backend.open(SessionConfig("run", seed=1), lambda events: None, on_lost)
    session.submit(ENDLESS)
    assert is_lost.wait(5)
    assert isinstance(lost[0], BackendDied)
    assert "the engine died: SystemExit: the script ends" in str(lost[0])
    with pytest.raises(BackendUnavailable):
        backend.open(SessionConfig("late", seed=1), lambda events: None, ignore)
    backend.close()


def test_a_fault_in_the_executor_loses_its_runs_instead_of_hanging_them(
    backend: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = threading.Event()
    session = backend.open(
        SessionConfig("run", seed=1), lambda events: None, lambda error: lost.set()
    )

    def broken(self: object, nodes: object) -> None:
        raise RuntimeError("a bug in the executor")

    monkeypatch.setattr("plait.interpreter.session.ExecutorSession.submit", broken)
    session.submit(ENDLESS)
    assert lost.wait(5)
    with pytest.raises(BackendUnavailable):
        backend.open(SessionConfig("late", seed=1), lambda events: None, ignore)
