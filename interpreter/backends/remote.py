"""A runtime in another process, reached over ZeroMQ."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from ...lang.errors import BackendDied, BackendError, BackendUnavailable
from ...lang.graph import Node
from ...runtime.errors import LinkError, RequestError
from ...runtime.serve.link import Link
from ...runtime.serve.progress import STUCK_S
from ..backend import Capabilities, Done, Failed, Listener, NodeEvent, SessionConfig
from ..wire import (
    MAX_NODES,
    decode_capabilities,
    decode_events,
    encode_config,
    encode_ids,
    encode_nodes,
)

_log = logging.getLogger(__name__)


class RemoteBackend:
    """Runs programs on a `plait serve` at `endpoint`; connects at once.

    `keys` is the folder of a client's CURVE keys, for a runtime beyond loopback. With
    `connect_timeout_s` 0 the caller calls `wait`. One thread serves all sessions. A backend
    whose runtime is gone stays so: make a new one. A runtime that lives, but owes answers and
    makes no step for `stuck_s` seconds, counts as gone.

    Raises: BackendUnavailable, if no runtime answers within `connect_timeout_s`.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        connect_timeout_s: float = 10.0,
        keys: str | os.PathLike[str] | None = None,
        stuck_s: float = STUCK_S,
    ) -> None:
        self._endpoint = endpoint
        self._pid = os.getpid()
        self._capabilities: Capabilities | None = None
        try:
            folder = Path(keys) if keys is not None else None
            self._link = Link(endpoint, keys=folder, stuck_s=stuck_s)
        except LinkError as error:
            raise BackendUnavailable(str(error)) from error
        if connect_timeout_s > 0:
            self.wait(connect_timeout_s)

    def wait(self, timeout_s: float) -> None:
        """Wait until the runtime answers, if the constructor was told not to.

        Raises: BackendUnavailable.
        """
        try:
            self._link.connect(timeout_s)
            self._capabilities = decode_capabilities(self._link.description)
        except LinkError as error:
            remedy = f"start one with `plait serve --listen {self._endpoint}`"
            raise BackendUnavailable(f"{error}; {remedy}, or check endpoint and keys") from error

    @property
    def is_lost(self) -> bool:
        """True once the runtime is gone, or the backend is closed."""
        return self._link.error is not None

    def capabilities(self) -> Capabilities:
        """Say what the runtime can do, as it said when it was connected."""
        if self._capabilities is None:
            raise BackendUnavailable(f"{self._endpoint}: not connected")
        return self._capabilities

    def open(
        self, config: SessionConfig, listener: Listener, on_lost: Callable[[Exception], None]
    ) -> RemoteSession:
        """Start a run. Raises: BackendDied if the runtime is gone."""
        if os.getpid() != self._pid:
            raise BackendError(
                f"{self._endpoint}: this process was forked from the one that connected; "
                "make a backend of its own"
            )
        return RemoteSession(self._link, config, listener, on_lost)

    def fail(self, reason: str) -> None:
        """Take note that the runtime is gone: every open session learns it now."""
        self._link.fail(LinkError(f"{self._endpoint}: {reason}"))

    def close(self) -> None:
        """Leave the runtime; open sessions get `on_lost`. Idempotent."""
        if os.getpid() == self._pid:
            self._link.close()


class RemoteSession:
    """One run on a remote runtime. Thread-safe; the listener is called on the link's thread."""

    def __init__(
        self,
        link: Link,
        config: SessionConfig,
        listener: Listener,
        on_lost: Callable[[Exception], None],
    ) -> None:
        self._link = link
        self._listener = listener
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._segment_of: dict[int, int] = {}  # node without a terminal event -> its segment
        self._ends: list[int] = []  # last node of each segment
        self._refusal: tuple[str, str] | None = None  # code and message: the session is over
        self._is_closed = False
        try:
            self._id = link.open(encode_config(config), self)
        except LinkError as error:
            raise BackendDied(str(error)) from error

    def submit(self, nodes: Sequence[Node], known: Sequence[Done] = ()) -> None:
        """Add a segment; each of its nodes gets exactly one terminal event."""
        done_of = {done.node: done for done in known}
        for first in range(0, len(nodes), MAX_NODES):
            part = nodes[first : first + MAX_NODES]
            self._submit(part, [done_of[node.id] for node in part if node.id in done_of])

    def _submit(self, nodes: Sequence[Node], known: Sequence[Done]) -> None:
        ids = [node.id for node in nodes]
        try:
            payload = encode_nodes(nodes, known)
        except RequestError as error:
            failed = _failures(ids, error.code, str(error))
            self._link.post(lambda: self._give(failed))
            return
        # Held over both: segments get their numbers in the order in which they are sent.
        with self._lock:
            refusal = self._refusal
            if refusal is None:
                seq = len(self._ends)
                self._ends.append(max(ids))
                self._segment_of.update(dict.fromkeys(ids, seq))
                self._link.submit(self._id, seq, payload)
        if refusal is not None:
            failed = _failures(ids, *refusal)
            self._link.post(lambda: self._give(failed))

    def cancel(self, nodes: Sequence[int]) -> None:
        """Stop these nodes and all that depend on them; idempotent."""
        by_segment: dict[int, list[int]] = {}
        with self._lock:
            for node in nodes:
                if node in self._segment_of:
                    by_segment.setdefault(self._segment_of[node], []).append(node)
        # A segment may still wait for credit; its own Cancel waits behind it.
        for seq, ids in by_segment.items():
            self._link.cancel(self._id, encode_ids(ids), seq)

    def close(self) -> None:
        """Stop everything; no event comes after it. Idempotent."""
        self._is_closed = True
        self._link.close_session(self._id)

    def on_events(self, payload: bytes) -> None:
        """Take events from the runtime."""
        try:
            events = decode_events(payload)
        except LinkError as error:
            self._link.fail(error)
            return
        with self._lock:
            for event in events:
                if isinstance(event, Done | Failed):
                    self._segment_of.pop(event.node, None)
        self._give(events)

    def on_refused(self, seq: int | None, code: str, message: str) -> None:
        """Fail the nodes of a refused segment, or all that are left of a refused session."""
        with self._lock:
            if seq is None:
                self._refusal = code, message
            lost = [node for node, of in self._segment_of.items() if seq is None or of == seq]
            for node in lost:
                del self._segment_of[node]
        self._give(_failures(lost, code, message))

    def on_lost(self, error: LinkError) -> None:
        """Tell the run that the runtime is gone."""
        if self._is_closed:
            return
        try:
            self._on_lost(BackendDied(str(error)))
        except Exception:
            _log.exception("the on_lost of a run raised")

    def _give(self, events: Sequence[NodeEvent]) -> None:
        if self._is_closed or not events:
            return
        try:
            self._listener(events)
        except Exception:
            # Its run would wait for ever, the others must not.
            _log.exception("the listener of a run raised; the run is over")
            self.on_lost(LinkError(f"{self._link.endpoint}: the run's own listener failed"))
            self.close()


def _failures(nodes: Sequence[int], code: str, message: str) -> list[NodeEvent]:
    return [Failed(node, code, message, node) for node in nodes]
