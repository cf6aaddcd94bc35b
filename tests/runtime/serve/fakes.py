"""A service without an engine, and a worker on a thread, for the tests of the transport."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from plait.runtime.errors import LinkError, RequestError
from plait.runtime.serve.api import Send, ServiceStats
from plait.runtime.serve.endpoint import listen
from plait.runtime.serve.limits import WorkerLimits
from plait.runtime.serve.worker import Worker


class EchoSession:
    """Answers each segment with its own payload; obeys a few words."""

    def __init__(self, service: EchoService, send: Send) -> None:
        self._service = service
        self._send = send
        self.held: list[int] = []
        self.is_closed = False

    def submit(self, seq: int, payload: bytes) -> None:
        if payload == b"bad":
            raise RequestError("invalid_request", "bad payload")
        if payload == b"crash":
            raise ZeroDivisionError("a bug")
        if payload == b"hold":
            self.held.append(seq)
            return
        if payload.startswith(b"flood"):
            for _ in range(int(payload[5:])):
                self._send(b"x" * 100_000, ())
        self._send(payload, (seq,))

    def cancel(self, payload: bytes) -> None:
        self._send(b"cancelled " + payload, tuple(self.held))
        self.held.clear()

    def close(self) -> None:
        self.is_closed = True
        self._service.num_closed += 1


class EchoService:
    """Opens echo sessions."""

    def __init__(self) -> None:
        self.num_steps = 1
        self.num_opened = 0
        self.num_closed = 0

    def describe(self) -> bytes:
        return b"echo"

    def open(self, payload: bytes, send: Send) -> EchoSession:
        if payload == b"bad":
            raise RequestError("invalid_request", "bad session")
        self.num_opened += 1
        return EchoSession(self, send)

    def stats(self) -> ServiceStats:
        return ServiceStats(self.num_steps)


class RunningWorker:
    """A worker on its own thread and loop."""

    def __init__(
        self,
        endpoint: str | None = None,
        limits: WorkerLimits | None = None,
        keys: Path | None = None,
    ) -> None:
        self.service = EchoService()
        self._listener = listen(endpoint, keys)
        self.endpoint = self._listener.endpoint
        self.worker = Worker(self._listener, self.service, limits)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self.worker.stop)
            self._thread.join(5)
        assert not self._thread.is_alive()

    def call(self, function: Callable[[], object]) -> None:
        """Run a function on the worker's loop."""
        self._loop.call_soon_threadsafe(function)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self.worker.run())
        finally:
            self._loop.close()
            self._listener.close()


@contextlib.contextmanager
def running_worker(
    endpoint: str | None = None,
    limits: WorkerLimits | None = None,
    keys: Path | None = None,
) -> Iterator[RunningWorker]:
    """Serve echoes while the block runs."""
    worker = RunningWorker(endpoint, limits, keys)
    try:
        yield worker
    finally:
        worker.stop()


class Recorder:
    """A session handler that keeps what it hears."""

    def __init__(self) -> None:
        self.heard = threading.Condition()
        self.payloads: list[bytes] = []
        self.refused: list[tuple[int | None, str, str]] = []
        self.lost: list[LinkError] = []

    def on_events(self, payload: bytes) -> None:
        with self.heard:
            self.payloads.append(payload)
            self.heard.notify_all()

    def on_refused(self, seq: int | None, code: str, message: str) -> None:
        with self.heard:
            self.refused.append((seq, code, message))
            self.heard.notify_all()

    def on_lost(self, error: LinkError) -> None:
        with self.heard:
            self.lost.append(error)
            self.heard.notify_all()

    def wait(self, num_payloads: int = 0, *, refused: int = 0, lost: int = 0) -> None:
        """Wait until this much was heard."""
        with self.heard:
            assert self.heard.wait_for(
                lambda: (
                    len(self.payloads) >= num_payloads
                    and len(self.refused) >= refused
                    and len(self.lost) >= lost
                ),
                10,
            ), (len(self.payloads), self.refused, self.lost)
