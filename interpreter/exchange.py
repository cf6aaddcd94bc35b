"""What passes between a run and its session: segments out, outcomes in, and who waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from ..lang.errors import ProgramError
from ..lang.graph import Node
from ..lang.ops import Gen
from ..lang.tape import Tape
from .backend import Backend, Done, Failed, NodeEvent, SessionConfig
from .failures import backend_died
from .home import Home
from .outbox import Outbox
from .outcomes import Outcomes
from .reader import Reader
from .waiters import Abandoned, Waiter, Waiters, wake

Sink: TypeAlias = Callable[[Sequence[NodeEvent]], None]


class Exchange:
    """Sends what one tape holds to one session of a backend, and notes what comes back.

    Thread-safe: events come on the backend's threads, waits from wherever the body runs. A
    backend's thread has others to serve, so values are read, and what has waited for them is
    sent, by whoever waits.
    """

    def __init__(
        self, tape: Tape, backend: Backend, config: SessionConfig, sink: Sink | None, home: Home
    ) -> None:
        self.outcomes = Outcomes()
        self.reader = Reader(tape)
        self._tape = tape
        self._sink = sink
        self._home = home
        self._lock = threading.Lock()
        self._submit_lock = threading.RLock()  # segments reach the session in order of id
        self._waiters = Waiters()
        self._outbox = Outbox(self.outcomes.by_node, self.reader.known)
        self._is_flush_due = False
        self._is_release_due = False  # something may be read, and then sent
        self._lost: Exception | None = None
        self._is_closed = False
        self._is_abandoned = False
        self._session = backend.open(config, self._on_events, self._on_lost)

    @property
    def is_over(self) -> bool:
        """True once nothing more can be sent: closed, or the session is lost."""
        return self._is_closed or self._lost is not None

    def flush(self) -> None:
        """Submit what the tape holds, as one segment."""
        with self._submit_lock:
            self.check()
            failed = self._submit(self._tape.take())
            unread = self._outbox.unread()
        self._on_events(failed)
        if unread:
            self._release(unread)

    def flush_soon(self) -> None:
        """Submit what the tape holds, together with what other tasks are about to record."""
        if not (self._home.num_tasks and self._home.turns):
            self.flush()
        elif not self._is_flush_due:
            self._is_flush_due = True
            self._home.soon(self._flush_due)

    def wait(
        self, nodes: Iterable[int], stops_at_failure: bool = False, num_known: int = 0
    ) -> None:
        """Wait until all of `nodes` are finished, or at `stops_at_failure` one more has failed.

        The caller knows the first `num_known` failures: one after them counts at once.
        """
        nodes = set(nodes)
        self.flush_soon()
        while True:
            self._release_due()
            with self._lock:
                missing = set(self.outcomes.missing(nodes))
                if not missing or (stops_at_failure and self.outcomes.has_failed(nodes, num_known)):
                    return
                self.check()
                if self._is_release_due:
                    continue
                waiter = Waiter(missing, stops_at_failure, self._home.signal())
                self._waiters.add(waiter)
            self._sleep(waiter)

    def cancel(self, nodes: Sequence[int]) -> None:
        """Stop these nodes, sent or kept back, and all that depend on them."""
        with self._submit_lock:
            failed = self._outbox.cancel(nodes)
            self._session.cancel(nodes)
        self._on_events(failed)

    def close(self) -> None:
        """Give the session back; what is still running stops. Idempotent."""
        with self._lock:
            self._is_closed = True
            waiters = self._waiters.take_all()
        self._session.close()
        wake(waiters)

    def abandon(self) -> None:
        """Close, and unwind the body at its current or next wait. From any thread."""
        self._is_abandoned = True
        self.close()

    def check(self) -> None:
        """Raise what keeps this run from going on, if anything does."""
        if self._is_abandoned:
            raise Abandoned
        if self._lost is not None:
            raise backend_died(self._lost)
        if self._is_closed:
            raise ProgramError("this run is finished; start a new one to go on")

    # Submitting

    def _flush_due(self) -> None:
        self._is_flush_due = False
        if self.is_over:
            return  # those who wait have been told
        try:
            self.flush()
        except Exception as error:
            self._on_lost(error)

    def _submit(self, segment: Sequence[Node]) -> list[Failed]:
        """Send what can be sent, with the lock held; give what has failed."""
        sendable, failed = self._outbox.release(segment)
        if sendable:
            self._session.submit(sendable)
        return failed

    def _release(self, unread: Iterable[Done]) -> None:
        """Read what has come, and send what has waited for it. Not on a backend's thread."""
        for done in unread:
            self.reader.values(done)
        with self._submit_lock:
            failed = [] if self._is_closed else self._submit(())
        self._on_events(failed)

    def _release_due(self) -> None:
        """Do what a backend's thread has left to be done; one waiter alone does it."""
        with self._lock:
            is_due, self._is_release_due = self._is_release_due, False
        if not is_due:
            return
        try:
            with self._submit_lock:
                unread = self._outbox.unread()
            self._release(unread)
        except BaseException:
            self._leave_release()
            raise

    def _leave_release(self) -> None:
        """Let somebody who waits send what may be sent; else who waits next will."""
        with self._lock:
            self._is_release_due = True
            woken = self._waiters.take_one()
        wake(woken)

    # Waking

    def _sleep(self, waiter: Waiter) -> None:
        try:
            waiter.signal.wait()
        except BaseException:  # it may have been woken to send something
            with self._lock:
                self._waiters.discard(waiter)
            if self._is_release_due:
                self._leave_release()
            raise

    def _on_events(self, events: Sequence[NodeEvent]) -> None:
        with self._lock:
            if self._is_closed:
                return
            woken: list[Waiter] = []
            for event in events:
                if isinstance(event, Done | Failed):
                    self.outcomes.add(event)
                    woken += self._waiters.settle(event)
        if self._sink is not None and events:
            self._sink(events)
        wake(woken)
        if any(isinstance(e, Done | Failed) and self._has_captures(e.node) for e in events):
            self._leave_release()

    def _has_captures(self, node: int) -> bool:
        op = self._tape.node(node).op
        return isinstance(op, Gen) and bool(op.captures)

    def _on_lost(self, error: Exception) -> None:
        with self._lock:
            self._lost = error
            waiters = self._waiters.take_all()
        wake(waiters)
