"""A backend that takes from a journal what was done before, and notes there what is done now.

The key of a node is a digest of all that its outcome follows from: the model, the run's seed and
sampling, the node's place and operation, and everything its text continues, with the outcomes in
it. So a changed prompt, schema, option or model finds nothing, and only what depends on it runs
again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from ..lang.errors import JournalError
from ..lang.graph import Node
from ..lang.ops import Gen, Score, Select, Text, Value
from ..lang.serialize import nodes_to_data
from ..lang.words import spell
from .backend import (
    Backend,
    Capabilities,
    Delta,
    Done,
    Failed,
    Listener,
    NodeEvent,
    Session,
    SessionConfig,
    Started,
)
from .journal import DoneRecord, Journal, RunRecord
from .states import sources_of

_log = logging.getLogger(__name__)


class JournaledBackend:
    """Runs on `backend` what `journal` does not have. `backend` is None for a replay."""

    def __init__(self, journal: Journal, backend: Backend | None, model_digest: str) -> None:
        self._journal = journal
        self._backend = backend
        self._model_digest = model_digest

    def capabilities(self) -> Capabilities:
        """Say what the backend can do. Raises: BackendError."""
        assert self._backend is not None, "a replay asks no model"
        return self._backend.capabilities()

    def close(self) -> None:
        """Leave the backend as it is: it belongs to whoever opened it."""

    def open(
        self, config: SessionConfig, listener: Listener, on_lost: Callable[[Exception], None]
    ) -> JournaledSession:
        """Start a run. Raises: BackendError."""
        start = None if self._backend is None else partial(self._backend.open, on_lost=on_lost)
        return JournaledSession(self._journal, config, self._model_digest, listener, start)


def journaled(
    journal: Journal, backend: Backend | None, program: str, seed: int
) -> JournaledBackend:
    """Give the backend of a run on `journal`, and note there how it begins.

    Raises: JournalError for a replay of a journal without a run; BackendError.
    """
    last = journal.last_run
    if backend is None:
        if last is None:
            raise JournalError(f"the journal {journal.path} has no run to replay")
        return JournaledBackend(journal, None, last.model_digest)
    known = backend.capabilities()
    if last is not None and last.model_digest != known.model_digest:
        _log.warning(
            "the journal %s was written with the model %s, and this run is on %s: "
            "what it has of the other model is not used",
            *(journal.path, last.model, known.model),
        )
    journal.begin(RunRecord(program, seed, known.model, known.model_digest))
    return JournaledBackend(journal, backend, known.model_digest)


class JournaledSession:
    """One run on a journal. What is known is told at once, on the thread that submits.

    The run on the backend starts with the first node that the journal does not have; those
    before it that its text continues go along, with their outcomes.
    """

    def __init__(
        self,
        journal: Journal,
        config: SessionConfig,
        model_digest: str,
        listener: Listener,
        start: Callable[[SessionConfig, Listener], Session] | None,
    ) -> None:
        self._journal = journal
        self._config = config
        self._listener = listener
        self._start = start
        self._session: Session | None = None
        self._lock = threading.Lock()
        self._keys = Keys(config, model_digest)
        self._known: dict[int, Done] = {}  # told, from the journal or from the backend
        self._waiting: dict[int, Node] = {}  # known, and not yet submitted to the backend
        self._is_closed = False

    def submit(self, nodes: Sequence[Node], known: Sequence[Done] = ()) -> None:
        """Add a segment; each of its nodes gets exactly one terminal event."""
        events: list[NodeEvent] = []
        new: list[Node] = []
        with self._lock:
            for node in nodes:
                self._keys.add(node)
                done = self._recall(node)
                if done is None:
                    new.append(node)
                    continue
                self._known[node.id] = done
                self._keys.settle(done)
                self._waiting[node.id] = node
                events += self._told(node, done)
        if events:
            self._listener(events)
        if new:
            self._run(new)

    def cancel(self, nodes: Sequence[int]) -> None:
        """Stop these nodes and all that depend on them; idempotent."""
        if self._session is not None:
            self._session.cancel([node for node in nodes if node not in self._known])

    def close(self) -> None:
        """Stop everything; no event comes after it. Idempotent."""
        self._is_closed = True
        if self._session is not None:
            self._session.close()

    def _recall(self, node: Node) -> Done | None:
        """Give what the journal knows of a node, or what follows without it."""
        if not all(source in self._known for source in sources_of(node)):
            return None
        match node.op:
            case Text(text):
                return Done(node.id, text)
            case Value(source) if source.capture is None:
                source_done = self._known[source.node]
                given = source_done.text if source_done.value is None else source_done.value
                return Done(node.id, given)
            case _:
                record = self._journal.get(self._keys.key(node.id))
                return None if record is None else record.done(node.id)

    def _told(self, node: Node, done: Done) -> list[NodeEvent]:
        if not isinstance(node.op, Gen | Select | Score) or not self._config.is_streaming:
            return [done]
        delta = [Delta(node.id, done.text)] if isinstance(node.op, Gen) and done.text else []
        return [Started(node.id), *delta, done]

    def _run(self, nodes: Sequence[Node]) -> None:
        if self._start is None:
            self._listener([self._not_recorded(node) for node in nodes])
            return
        with self._lock:
            before = self._needed(nodes)
            ran = (node for node in before if isinstance(node.op, Gen | Select | Score))
            known = [self._known[node.id] for node in ran]
            if self._session is None:
                config = replace(self._config, keeps_tokens=True)
                self._session = self._start(config, self._on_events)
            session = self._session
        session.submit([*before, *nodes], known)

    def _needed(self, nodes: Iterable[Node]) -> list[Node]:
        """Take the waiting nodes that these build on, in order of id."""
        found: list[Node] = []
        pending = list(nodes)
        while pending:
            for source in sources_of(pending.pop()):
                node = self._waiting.pop(source, None)
                if node is not None:
                    found.append(node)
                    pending.append(node)
        return sorted(found, key=lambda node: node.id)

    def _not_recorded(self, node: Node) -> Failed:
        message = (
            f"{spell(node.op)} is not in the journal {self._journal.path}: the program, its "
            "arguments or its options differ from those that were recorded, or the run did not "
            "come to it; run it with journal= in place of a replay"
        )
        return Failed(node.id, "not_recorded", message, node.id)

    def _on_events(self, events: Sequence[NodeEvent]) -> None:
        told: list[NodeEvent] = []
        with self._lock:
            if self._is_closed:
                return
            for event in events:
                if isinstance(event, Done):
                    if event.node in self._known:  # it was told when it was recalled
                        continue
                    self._known[event.node] = event
                    self._note(event)
                told.append(event)
        if told:
            self._listener(told)

    def _note(self, done: Done) -> None:
        """Write an outcome down before the program can see it."""
        if self._keys.is_recorded(done.node):
            key = self._keys.key(done.node)
            self._journal.add(DoneRecord(key, done.text, done.meta, done.value, done.tokens))
        self._keys.settle(done)


class Keys:
    """The keys of a session's nodes. A node's key can be asked once all it builds on is settled."""

    def __init__(self, config: SessionConfig, model_digest: str) -> None:
        parts = (model_digest, config.seed, repr(config.sampling))
        self._start = _digest("start", *parts)
        self._nodes: dict[int, tuple[Node, int]] = {}  # with its number among its branch's
        self._num_of: dict[str, int] = {}
        self._texts: dict[int, str] = {}  # digest of the text up to and with a node

    def add(self, node: Node) -> None:
        """Take a node, in order of submission."""
        number = self._num_of.get(node.branch, 0)
        if self.is_op_recorded(node):
            self._num_of[node.branch] = number + 1
        self._nodes[node.id] = node, number

    def is_recorded(self, node: int) -> bool:
        """Say whether a node's outcome is to be kept: what does not follow from others'."""
        return self.is_op_recorded(self._nodes[node][0])

    @staticmethod
    def is_op_recorded(node: Node) -> bool:
        """Say whether the outcomes of such nodes are kept."""
        return not isinstance(node.op, Text | Value)

    def key(self, node: int) -> str:
        """Give the key of a node."""
        own, number = self._nodes[node]
        (data,) = nodes_to_data([Node(0, own.op, None)])
        op = json.dumps(data["op"], ensure_ascii=False)
        reads = [self._texts[source] for source in own.reads]
        return _digest("key", self._before(own), own.branch, number, op, *reads)

    def settle(self, done: Done) -> None:
        """Take a node's outcome."""
        node, _ = self._nodes[done.node]
        written = () if done.tokens is None else done.tokens.token_ids
        kind = type(node.op).__name__
        self._texts[done.node] = _digest("text", self._before(node), kind, done.text, written)

    def _before(self, node: Node) -> str:
        return self._start if node.prev is None else self._texts[node.prev]


def _digest(*parts: object) -> str:
    # repr of a tuple of str, int and tuples of int: no two differ in what they say alone.
    return hashlib.sha256(repr(parts).encode()).hexdigest()
