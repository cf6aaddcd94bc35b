"""What runs behind a state: submits its segments, waits for nodes, turns failures into errors."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from ..lang.driver import Bodies, TaskGroup
from ..lang.errors import Invalid, NodeError, ProgramError, Truncated
from ..lang.graph import Node
from ..lang.ops import Gen, Source
from ..lang.tape import Tape
from .backend import Backend, Done, Failed, NodeEvent, NodeMeta, SessionConfig
from .failures import Outcome, backend_died, failure_error
from .group import BranchGroup
from .home import Home
from .outbox import Outbox
from .outcomes import Outcomes
from .reader import Reader
from .waiters import Abandoned, Waiter, Waiters, wake

Sink: TypeAlias = Callable[[Sequence[NodeEvent]], None]


class LiveDriver:
    """Runs the nodes of one tape in one session of a backend.

    The outcomes stay readable after `close`. Thread-safe: events come on the backend's
    threads, waits from wherever the body runs. A backend's thread has others to serve, so
    values are read, and what has waited for them is sent, by whoever waits.
    """

    def __init__(
        self,
        tape: Tape,
        backend: Backend,
        config: SessionConfig,
        sink: Sink | None = None,
        home: Home | None = None,
    ) -> None:
        self.home = Home() if home is None else home
        self._tape = tape
        self._sink = sink
        self._lock = threading.Lock()
        self._submit_lock = threading.RLock()  # segments reach the session in order of id
        self._outcomes = Outcomes()
        self._waiters = Waiters()
        self._reader = Reader(tape)
        self._outbox = Outbox(self._outcomes.by_node, self._reader.known)
        self._is_flush_due = False
        self._is_release_due = False  # something may be read, and then sent
        self._lost: Exception | None = None
        self._is_closed = False
        self._is_abandoned = False
        self._session = backend.open(config, self._on_events, self._on_lost)

    # What a state asks for

    def value(self, source: Source) -> object:
        """Give a node's value, or a capture; submits and waits.

        Raises: NodeError, BackendError.
        """
        done = self._done(source.node)
        try:
            return self.parsed(done, source.capture)
        except (Truncated, Invalid):
            self._outcomes.handle((source.node,))
            raise

    def parsed(self, done: Done, capture: str | None = None) -> object:
        """Give the value of a node that is done: its text, or what a schema's JSON says.

        Raises: Truncated, Invalid.
        """
        return self._reader.values(done).get(capture)

    def text(self, node: int) -> str:
        """Give the text that a node added to its branch; submits and waits."""
        return self._done(node).text

    def meta(self, node: int) -> NodeMeta:
        """Give what is known of a finished node; submits and waits."""
        return self._done(node).meta

    def wait(self, nodes: Sequence[int]) -> None:
        """Wait for all of `nodes`; at the first failure cancel the rest, and raise it."""
        self._await(nodes, stops_at_failure=True)
        failures = self._outcomes.failures(nodes)
        if not failures:
            for fault in self._faults(nodes):
                self._outcomes.handle(nodes)
                raise fault
            return
        rest = self._outcomes.missing(nodes)
        if rest:
            self._cancel(rest)
            self._await(nodes)
        self._outcomes.handle(nodes)
        raise self.error(self._outcomes.cause(failures[0], nodes))

    def cancel(self, nodes: Sequence[int]) -> None:
        """Stop those of `nodes` that have not ended; what becomes of them is no failure."""
        self._outcomes.handle(nodes)
        if self._is_closed or self._lost is not None:
            return
        self.flush()  # what is not sent yet would run on
        rest = self._outcomes.missing(nodes)
        if rest:
            self._cancel(rest)

    def start(self, bodies: Bodies, times: int, timeout: float | None) -> TaskGroup:
        """Run the bodies of branches, each as a task of its own."""
        return BranchGroup(self, bodies, times, timeout)

    def drive(self, result: object) -> object:
        """Give what a body returned; of an async body, what its coroutine gives."""
        return self.home.drive(result) if inspect.iscoroutine(result) else result

    # What a run asks for

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
        if not (self.home.num_tasks and self.home.turns):
            self.flush()
        elif not self._is_flush_due:
            self._is_flush_due = True
            self.home.soon(self._flush_due)

    def _flush_due(self) -> None:
        self._is_flush_due = False
        if self._is_closed or self._lost is not None:
            return  # those who wait have been told
        try:
            self.flush()
        except Exception as error:
            self._on_lost(error)

    def finish(self) -> None:
        """Submit the rest and wait for everything.

        Raises: the first failure that the body has not handled, as soon as it happens. A
        failure is handled when the error of the node where it began was raised in the body.
        """
        self.flush()
        nodes = range(len(self._tape))
        while True:
            num_known = self._outcomes.num_failures
            for failure in self._outcomes.failures(nodes):
                if not self._outcomes.is_handled(failure.node, failure.origin):
                    raise self.error(self._outcomes.cause(failure, nodes))
            if not self._outcomes.missing(nodes):
                break
            self._await(nodes, stops_at_failure=True, num_known=num_known)
        for fault in self._faults(nodes):
            if fault.node is None or not self._outcomes.is_handled(fault.node):
                raise fault

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

    @property
    def outcomes(self) -> Mapping[int, Outcome]:
        """Give what is known of the finished nodes, by id."""
        return self._outcomes.by_node

    def error(self, failure: Failed) -> NodeError:
        """Give the error for a failed node; names it, its line, and where the failure began."""
        for fault in self._faults((failure.origin,)):  # it uses a capture that is not there
            return fault
        return failure_error(failure, self._tape, self._outcomes.by_node)

    # Submitting

    def _submit(self, segment: Sequence[Node]) -> list[Failed]:
        """Send what can be sent, with the lock held; give what has failed."""
        sendable, failed = self._outbox.release(segment)
        if sendable:
            self._session.submit(sendable)
        return failed

    def _release(self, unread: Iterable[Done]) -> None:
        """Read what has come, and send what has waited for it. Not on a backend's thread."""
        for done in unread:
            self._reader.values(done)
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

    def _cancel(self, nodes: Sequence[int]) -> None:
        with self._submit_lock:
            failed = self._outbox.cancel(nodes)
            self._session.cancel(nodes)
        self._on_events(failed)

    # Waiting

    def _done(self, node: int) -> Done:
        known = self._outcomes.by_node
        if node not in known:
            self._await((node,))
        outcome = known[node]
        if isinstance(outcome, Failed):
            self._outcomes.handle((node,))
            raise self.error(outcome)
        return outcome

    def _await(
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
                missing = set(self._outcomes.missing(nodes))
                if not missing or (
                    stops_at_failure and self._outcomes.has_failed(nodes, num_known)
                ):
                    return
                self.check()
                if self._is_release_due:
                    continue
                waiter = Waiter(missing, stops_at_failure, self.home.signal())
                self._waiters.add(waiter)
            self._sleep(waiter)

    def _sleep(self, waiter: Waiter) -> None:
        try:
            waiter.signal.wait()
        except BaseException:  # it may have been woken to send something
            with self._lock:
                self._waiters.discard(waiter)
            if self._is_release_due:
                self._leave_release()
            raise

    def check(self) -> None:
        """Raise what keeps this run from going on, if anything does."""
        if self._is_abandoned:
            raise Abandoned
        if self._lost is not None:
            raise backend_died(self._lost)
        if self._is_closed:
            raise ProgramError("this run is finished; start a new one to go on")

    def _on_events(self, events: Sequence[NodeEvent]) -> None:
        with self._lock:
            if self._is_closed:
                return
            woken: list[Waiter] = []
            for event in events:
                if isinstance(event, Done | Failed):
                    self._outcomes.add(event)
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

    # Failures

    def _faults(self, nodes: Iterable[int]) -> Iterator[Truncated | Invalid]:
        """Give what is wrong with the values of the finished nodes among `nodes`, in order."""
        return self._reader.faults(self._outcomes.done(nodes))
