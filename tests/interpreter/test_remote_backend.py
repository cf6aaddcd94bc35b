"""The remote backend against a worker in this process, over a scripted model."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from plait.interpreter.backend import Delta, Done, Failed, NodeEvent, SessionConfig, Started
from plait.interpreter.backends.remote import RemoteBackend
from plait.interpreter.service import GraphService
from plait.lang.errors import BackendDied, BackendError, BackendUnavailable
from plait.lang.graph import Node
from plait.lang.ops import Gen, Sampling, Text
from plait.runtime.config import EngineConfig
from plait.runtime.loop import EngineThread
from plait.runtime.model.scripted import Script, scripted_model
from plait.runtime.serve.endpoint import listen
from plait.runtime.serve.limits import WorkerLimits
from plait.runtime.serve.worker import Worker

GREEDY = Sampling(temperature=0.0, max_tokens=200)


def say(text: str) -> str:
    """Count the letters; a text that ends in a star makes the model talk for long."""
    return "la" * 2000 if text.endswith("*") else f"{len(text)} letters"


class Runtime:
    """Engine, service and worker on a thread."""

    def __init__(self, limits: WorkerLimits | None = None, script: Script = say) -> None:
        self.engine = EngineThread(scripted_model(script), EngineConfig(max_running=8))
        self._listener = listen(None)
        self.endpoint = self._listener.endpoint
        self._loop = asyncio.new_event_loop()
        service = GraphService(self.engine, self._post, self._loop.call_later)
        self.worker = Worker(self._listener, service, limits)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self.worker.stop)
            self._thread.join(5)

    def wait_idle(self) -> None:
        """Wait until the engine has nothing to do: within a second."""
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            stats = self.engine.stats()
            if stats.num_running == stats.num_waiting == 0 and self.worker.num_sessions == 0:
                return
            time.sleep(0.01)
        raise AssertionError(f"still busy: {self.engine.stats()}, {self.worker.num_sessions}")

    def _post(self, call: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(call)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self.worker.run())
        finally:
            self.engine.close()
            self._loop.close()
            self._listener.close()


class Heard:
    """What a run heard."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.events: list[NodeEvent] = []
        self.lost: list[Exception] = []

    def listen(self, events: Sequence[NodeEvent]) -> None:
        with self._changed:
            self.events.extend(events)
            self._changed.notify_all()

    def on_lost(self, error: Exception) -> None:
        with self._changed:
            self.lost.append(error)
            self._changed.notify_all()

    def terminal(self) -> list[Done | Failed]:
        return [event for event in self.events if isinstance(event, Done | Failed)]

    def wait(self, predicate: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(predicate, 10), (self.events[-5:], self.lost)

    def wait_for(self, count: int) -> list[Done | Failed]:
        """Wait for as many terminal events; none may be twice."""
        self.wait(lambda: len(self.terminal()) >= count)
        found = self.terminal()
        assert len({event.node for event in found}) == len(found) == count
        return found


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    runtime = Runtime()
    yield runtime
    runtime.stop()


@pytest.fixture
def backend(runtime: Runtime) -> Iterator[RemoteBackend]:
    backend = RemoteBackend(runtime.endpoint)
    yield backend
    backend.close()


def config(name: str = "run", *, is_streaming: bool = False) -> SessionConfig:
    return SessionConfig(name, 1, GREEDY, is_streaming)


def long_program() -> list[Node]:
    return [Node(0, Text("go*"), None), Node(1, Gen("x", Sampling(max_tokens=4000)), 0)]


def test_a_program_runs_and_streams(backend: RemoteBackend) -> None:
    heard = Heard()
    session = backend.open(config(is_streaming=True), heard.listen, heard.on_lost)
    session.submit([Node(0, Text("abc"), None), Node(1, Gen("x"), 0)])
    done = heard.wait_for(2)[-1]
    assert isinstance(done, Done)
    assert done.text == "3 letters"
    assert heard.events[0] == Done(0, "abc")
    assert Started(1) in heard.events
    deltas = [event.text for event in heard.events if isinstance(event, Delta)]
    assert "".join(deltas) == done.text


def test_a_later_segment_continues_an_earlier_one(backend: RemoteBackend) -> None:
    heard = Heard()
    session = backend.open(config(), heard.listen, heard.on_lost)
    session.submit([Node(0, Text("abc"), None), Node(1, Gen("x"), 0)])
    session.submit([Node(2, Text("!"), 1), Node(3, Gen("y"), 2)])
    heard.wait_for(4)
    assert [event.text for event in heard.terminal() if isinstance(event, Done)][-1] == "13 letters"


def test_the_backend_says_what_it_can_do(backend: RemoteBackend) -> None:
    capabilities = backend.capabilities()
    assert capabilities.model == "scripted"
    assert capabilities.max_context == 8192
    assert capabilities.has_chat_template


def test_a_segment_that_cannot_be_sent_fails_its_nodes_alone(backend: RemoteBackend) -> None:
    heard = Heard()
    session = backend.open(config(), heard.listen, heard.on_lost)
    session.submit([Node(0, Text("lone \ud800"), None), Node(1, Gen("x"), 0)])
    session.submit([Node(2, Text("abc"), None), Node(3, Gen("y"), 2)])
    failed = [event for event in heard.wait_for(4) if isinstance(event, Failed)]
    assert {event.node for event in failed} == {0, 1}
    assert {event.code for event in failed} == {"invalid_request"}


def test_a_segment_that_the_runtime_refuses_fails_its_nodes_alone(backend: RemoteBackend) -> None:
    heard = Heard()
    session = backend.open(config(), heard.listen, heard.on_lost)
    session.submit([Node(0, Text("abc"), None)])
    session.submit([Node(2, Text("a"), None), Node(1, Gen("x"), None)])  # ids must grow
    session.submit([Node(3, Gen("y"), 0)])
    failed = [event for event in heard.wait_for(4) if isinstance(event, Failed)]
    assert {event.node for event in failed} == {1, 2}


def test_a_large_segment_goes_in_pieces(backend: RemoteBackend) -> None:
    heard = Heard()
    session = backend.open(config(), heard.listen, heard.on_lost)
    nodes = [Node(i, Text("x"), i - 1 if i else None) for i in range(4500)]
    session.submit([*nodes, Node(4500, Gen("x"), 4499)])
    done = heard.wait_for(4501)[-1]
    assert isinstance(done, Done)
    assert done.text == "4500 letters"


def test_an_argument_without_meaning_fails_its_node(backend: RemoteBackend) -> None:
    heard = Heard()
    session = backend.open(config(), heard.listen, heard.on_lost)
    session.submit([Node(0, Text("a"), None), Node(1, Gen("x", Sampling(top_p=2.0)), 0)])
    assert any(isinstance(event, Failed) for event in heard.wait_for(2))


def test_a_cancelled_gen_stops_in_the_runtime(runtime: Runtime, backend: RemoteBackend) -> None:
    heard = Heard()
    session = backend.open(config(is_streaming=True), heard.listen, heard.on_lost)
    session.submit(long_program())
    heard.wait(lambda: any(isinstance(event, Delta) for event in heard.events))
    session.cancel([1, 1, 99])
    session.cancel([1])
    failed = heard.wait_for(2)[-1]
    assert isinstance(failed, Failed)
    assert failed.code == "cancelled"
    session.close()
    runtime.wait_idle()


def test_closing_a_session_in_mid_stream_frees_everything(
    runtime: Runtime, backend: RemoteBackend
) -> None:
    heard = Heard()
    session = backend.open(config(is_streaming=True), heard.listen, heard.on_lost)
    session.submit(long_program())
    heard.wait(lambda: any(isinstance(event, Delta) for event in heard.events))
    session.close()
    session.close()
    session.submit([Node(9, Text("x"), None)])
    runtime.wait_idle()
    assert heard.lost == []


def test_two_runs_with_the_same_id_do_not_meet(backend: RemoteBackend) -> None:
    heards = [Heard() for _ in range(10)]
    for i, heard in enumerate(heards, 1):
        session = backend.open(config("same"), heard.listen, heard.on_lost)
        session.submit([Node(0, Text("a" * i), None), Node(1, Gen("x"), 0)])
    for i, heard in enumerate(heards, 1):
        done = heard.wait_for(2)[-1]
        assert isinstance(done, Done)
        assert done.text == f"{i} letters"


def test_fifty_disconnects_and_then_a_normal_request(runtime: Runtime) -> None:
    for i in range(50):
        backend = RemoteBackend(runtime.endpoint)
        session = backend.open(config(), Heard().listen, lambda error: None)
        session.submit(long_program())
        if i % 2:
            time.sleep(0.01)
        backend.close()
    runtime.wait_idle()
    backend = RemoteBackend(runtime.endpoint)
    heard = Heard()
    session = backend.open(config(), heard.listen, heard.on_lost)
    session.submit([Node(0, Text("abc"), None), Node(1, Gen("x"), 0)])
    heard.wait_for(2)
    backend.close()


def test_a_runtime_that_stops_reaches_every_run(runtime: Runtime, backend: RemoteBackend) -> None:
    heards = [Heard() for _ in range(20)]
    for heard in heards:
        session = backend.open(config(), heard.listen, heard.on_lost)
        session.submit(long_program())
    start = time.monotonic()
    runtime.stop()
    for heard in heards:
        heard.wait(lambda heard=heard: bool(heard.lost))  # type: ignore[misc]
        assert isinstance(heard.lost[0], BackendDied)
    assert time.monotonic() - start < 3
    assert backend.is_lost
    with pytest.raises(BackendDied):
        backend.open(config(), heards[0].listen, heards[0].on_lost)
    backend.close()
    assert all(len(heard.lost) == 1 for heard in heards)


def test_closing_the_backend_tells_the_runs(backend: RemoteBackend) -> None:
    heard = Heard()
    backend.open(config(), heard.listen, heard.on_lost)
    backend.close()
    backend.close()
    assert len(heard.lost) == 1
    assert isinstance(heard.lost[0], BackendError)


def test_a_listener_that_raises_ends_its_run_alone(
    backend: RemoteBackend, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(events: Sequence[NodeEvent]) -> None:
        raise ZeroDivisionError

    bad, good = Heard(), Heard()
    for listener, heard in ((broken, bad), (good.listen, good)):
        session = backend.open(config(), listener, heard.on_lost)
        session.submit([Node(0, Text("abc"), None)])
    good.wait_for(1)
    bad.wait(lambda: bool(bad.lost))
    assert "listener" in caplog.text


def test_nobody_at_the_endpoint_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="plait serve --listen"):
        RemoteBackend(f"ipc://{tmp_path}/nobody.sock", connect_timeout_s=0.1)
    with pytest.raises(BackendUnavailable, match="ipc://PATH"):
        RemoteBackend("nowhere")
