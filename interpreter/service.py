"""Executes submitted graphs inside a worker, and streams their events back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from ..runtime.errors import RequestError
from ..runtime.metrics import EngineStats
from ..runtime.serve.api import Send, ServiceStats
from .backend import Done, Failed, Listener, NodeEvent
from .calls import EngineLike, Later, Post
from .executor import Executor, ExecutorSession
from .wire import decode_config, decode_ids, decode_nodes, encode_capabilities, encode_events


class ServedEngine(EngineLike, Protocol):
    """The engine behind a service; runtime/loop.py's `EngineThread` is one."""

    def stats(self) -> EngineStats:
        """Give a snapshot of its counters."""
        ...


class GraphService:
    """What a worker serves: one executor on one engine. All calls on the worker's loop.

    `post` brings the engine's outputs to that loop, where `later` runs callbacks.
    """

    def __init__(self, engine: ServedEngine, post: Post, later: Later | None = None) -> None:
        self._engine = engine
        self._executor = Executor(engine, post, later)
        self._ids = itertools.count()
        self._description = encode_capabilities(self._executor.capabilities)

    def describe(self) -> bytes:
        """Give the capabilities, encoded."""
        return self._description

    def open(self, payload: bytes, send: Send) -> ServedSession:
        """Start a session. Raises: RequestError."""
        config = decode_config(payload)
        # The ids of requests grow from the session's: two clients must not choose the same.
        config = replace(config, id=f"session-{next(self._ids)}")
        return ServedSession(send, lambda listener: self._executor.open(config, listener))

    def stats(self) -> ServiceStats:
        """Give the numbers for the heartbeat."""
        stats = self._engine.stats()
        return ServiceStats(stats.num_steps, stats.num_running, stats.num_waiting)


class ServedSession:
    """One run of a client's program: counts its segments, and sends what happens."""

    def __init__(self, send: Send, open_session: OpenSession) -> None:
        self._send = send
        self._segment_of: dict[int, int] = {}  # node that is not done -> segment
        self._num_left: dict[int, int] = {}  # segment -> nodes that are not done
        self._known: set[int] = set()
        self._session = open_session(self._on_events)

    def submit(self, seq: int, payload: bytes) -> None:
        """Take a segment. Raises: RequestError."""
        nodes, known = decode_nodes(payload)
        ids = {node.id for node in nodes}
        if len(ids) < len(nodes) or not ids.isdisjoint(self._known):
            raise RequestError("invalid_request", "a segment has a node id that was used before")
        self._known |= ids
        self._segment_of.update(dict.fromkeys(ids, seq))
        self._num_left[seq] = len(ids)
        self._session.submit(nodes, known)

    def cancel(self, payload: bytes) -> None:
        """Stop nodes and all that depend on them. Raises: RequestError."""
        self._session.cancel(decode_ids(payload))

    def close(self) -> None:
        """Stop everything. Idempotent."""
        self._session.close()

    def _on_events(self, events: Sequence[NodeEvent]) -> None:
        finished = self._count(events)
        *first, last = encode_events(events)
        for payload in first:
            self._send(payload, ())
        self._send(last, finished)

    def _count(self, events: Sequence[NodeEvent]) -> list[int]:
        """Give the segments that these events finish."""
        finished: list[int] = []
        for event in events:
            if not isinstance(event, Done | Failed):
                continue
            seq = self._segment_of.pop(event.node, None)
            if seq is None:
                continue
            self._num_left[seq] -= 1
            if not self._num_left[seq]:
                del self._num_left[seq]
                finished.append(seq)
        return finished


class OpenSession(Protocol):
    """Opens an executor's session for a listener."""

    def __call__(self, listener: Listener) -> ExecutorSession: ...
