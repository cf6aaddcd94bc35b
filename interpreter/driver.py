"""What runs behind a state: gives values, waits for nodes, turns failures into errors."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..lang.driver import Bodies, TaskGroup
from ..lang.errors import Invalid, NodeError, Truncated
from ..lang.ops import Source
from ..lang.tape import Tape
from .backend import Backend, Done, Failed, NodeMeta, SessionConfig
from .exchange import Exchange, Sink
from .failures import Outcome, failure_error
from .group import BranchGroup
from .home import Home


class LiveDriver:
    """Runs the nodes of one tape in one session of a backend.

    The outcomes stay readable after `close`. Thread-safe: waits come from wherever the body
    runs.
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
        self._exchange = Exchange(tape, backend, config, sink, self.home)
        self._outcomes = self._exchange.outcomes
        self._reader = self._exchange.reader

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
        self._exchange.wait(nodes, stops_at_failure=True)
        failures = self._outcomes.failures(nodes)
        if not failures:
            for fault in self._faults(nodes):
                self._outcomes.handle(nodes)
                raise fault
            return
        rest = self._outcomes.missing(nodes)
        if rest:
            self._exchange.cancel(rest)
            self._exchange.wait(nodes)
        self._outcomes.handle(nodes)
        raise self.error(self._outcomes.cause(failures[0], nodes))

    def cancel(self, nodes: Sequence[int]) -> None:
        """Stop those of `nodes` that have not ended; what becomes of them is no failure."""
        self._outcomes.handle(nodes)
        if self._exchange.is_over:
            return
        self.flush()  # what is not sent yet would run on
        rest = self._outcomes.missing(nodes)
        if rest:
            self._exchange.cancel(rest)

    def start(self, bodies: Bodies, times: int, timeout: float | None) -> TaskGroup:
        """Run the bodies of branches, each as a task of its own."""
        return BranchGroup(self, bodies, times, timeout)

    def drive(self, result: object) -> object:
        """Give what a body returned; of an async body, what its coroutine gives."""
        return self.home.drive(result) if inspect.iscoroutine(result) else result

    # What a run asks for

    def flush(self) -> None:
        """Submit what the tape holds, as one segment."""
        self._exchange.flush()

    def flush_soon(self) -> None:
        """Submit what the tape holds, together with what other tasks are about to record."""
        self._exchange.flush_soon()

    def check(self) -> None:
        """Raise what keeps this run from going on, if anything does."""
        self._exchange.check()

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
            self._exchange.wait(nodes, stops_at_failure=True, num_known=num_known)
        for fault in self._faults(nodes):
            if fault.node is None or not self._outcomes.is_handled(fault.node):
                raise fault

    def close(self) -> None:
        """Give the session back; what is still running stops. Idempotent."""
        self._exchange.close()

    def abandon(self) -> None:
        """Close, and unwind the body at its current or next wait. From any thread."""
        self._exchange.abandon()

    @property
    def outcomes(self) -> Mapping[int, Outcome]:
        """Give what is known of the finished nodes, by id."""
        return self._outcomes.by_node

    def error(self, failure: Failed) -> NodeError:
        """Give the error for a failed node; names it, its line, and where the failure began."""
        for fault in self._faults((failure.origin,)):  # it uses a capture that is not there
            return fault
        return failure_error(failure, self._tape, self._outcomes.by_node)

    def _done(self, node: int) -> Done:
        known = self._outcomes.by_node
        if node not in known:
            self._exchange.wait((node,))
        outcome = known[node]
        if isinstance(outcome, Failed):
            self._outcomes.handle((node,))
            raise self.error(outcome)
        return outcome

    def _faults(self, nodes: Iterable[int]) -> Iterator[Truncated | Invalid]:
        """Give what is wrong with the values of the finished nodes among `nodes`, in order."""
        return self._reader.faults(self._outcomes.done(nodes))
