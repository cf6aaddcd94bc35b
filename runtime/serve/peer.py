"""One client as a worker sees it: its sessions, its credits, what it has yet to read."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence

from ..errors import RequestCode, RequestError
from ..protocol import Cancel, Events, Open, Refused, Submit, WorkerMessage, shorten
from .api import Service, ServiceSession
from .limits import Tally, WorkerLimits

_log = logging.getLogger("plait.serve")


class Outbox:
    """Frames that a client has yet to read, and their size."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self.num_bytes = 0

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def first(self) -> bytes:
        """The frame that is next."""
        return self._frames[0]

    def push(self, frame: bytes) -> None:
        """Queue a frame."""
        self._frames.append(frame)
        self.num_bytes += len(frame)

    def pop(self) -> None:
        """Drop the first frame: it is on its way."""
        self.num_bytes -= len(self._frames.popleft())


class Peer:
    """Executes what one client asks for. The worker owns it; all calls on its loop."""

    def __init__(
        self,
        identity: bytes,
        service: Service,
        limits: WorkerLimits,
        tally: Tally,
        post: Callable[[Peer, WorkerMessage], None],
    ) -> None:
        self.identity = identity
        self.last_heard_s = 0.0
        self.outbox = Outbox()
        self.sessions: dict[int, ServiceSession] = {}
        self._unfinished: dict[int, dict[int, int]] = {}  # session -> segment -> bytes
        self._num_unfinished = 0
        self._unfinished_bytes = 0
        self._service = service
        self._limits = limits
        self._tally = tally
        self._post = post

    def open(self, message: Open) -> None:
        """Start a session."""
        session = message.session
        if session in self.sessions:
            self._tally.count("duplicate_sessions", f"a client opened session {session} twice")
            return
        if len(self.sessions) >= self._limits.sessions:
            self._refuse(session, None, "queue_full", "too many open sessions")
            return

        def send(payload: bytes, finished: Sequence[int]) -> None:
            if session in self.sessions:
                for seq in finished:
                    self._give_back(session, seq)
                self._post(self, Events(session, payload, tuple(finished)))

        try:
            self.sessions[session] = self._service.open(message.payload, send)
        except Exception as error:
            self._refuse_for(error, session, None)

    def submit(self, message: Submit) -> None:
        """Take a segment, if the client has a credit for it."""
        session = self.sessions.get(message.session)
        if session is None:
            return  # it was refused a moment ago, and the client knows
        problem = self._credit_problem(message)
        if problem is not None:
            self._refuse(message.session, message.seq, "queue_full", problem)
            return
        self._take(message.session, message.seq, len(message.payload))
        try:
            session.submit(message.seq, message.payload)
        except Exception as error:
            self._give_back(message.session, message.seq)
            self._refuse_for(error, message.session, message.seq)

    def cancel(self, message: Cancel) -> None:
        """Stop a part of a session."""
        session = self.sessions.get(message.session)
        if session is None:
            return
        try:
            session.cancel(message.payload)
        except Exception as error:
            self._refuse_for(error, message.session, None)

    def close(self, session: int) -> None:
        """End a session and free its credits; an unknown one is ignored."""
        segments = self._unfinished.get(session, {})
        for seq in tuple(segments):
            self._give_back(session, seq)
        found = self.sessions.pop(session, None)
        if found is None:
            return
        try:
            found.close()
        except Exception as error:
            _log.error("a session did not close: %s", error, exc_info=error)

    def close_all(self) -> None:
        """End every session."""
        for session in tuple(self.sessions):
            self.close(session)

    def _credit_problem(self, message: Submit) -> str | None:
        if message.seq in self._unfinished.get(message.session, {}):
            return f"segment {message.seq} is already running"
        if self._num_unfinished >= self._limits.credits:
            return f"over the credit of {self._limits.credits} unfinished segments"
        size = self._unfinished_bytes + len(message.payload)
        if self._num_unfinished and size > self._limits.credit_bytes:
            return f"over the credit of {self._limits.credit_bytes} bytes in unfinished segments"
        return None

    def _take(self, session: int, seq: int, num_bytes: int) -> None:
        self._unfinished.setdefault(session, {})[seq] = num_bytes
        self._num_unfinished += 1
        self._unfinished_bytes += num_bytes

    def _give_back(self, session: int, seq: int) -> None:
        segments = self._unfinished.get(session, {})
        num_bytes = segments.pop(seq, None)
        if num_bytes is None:
            return
        self._num_unfinished -= 1
        self._unfinished_bytes -= num_bytes
        if not segments:
            del self._unfinished[session]

    def _refuse_for(self, error: Exception, session: int, seq: int | None) -> None:
        """Refuse what the service would not take; a fault of ours ends the session."""
        if isinstance(error, RequestError):
            self._refuse(session, seq, error.code, str(error))
            return
        _log.error("a session failed: %s", error, exc_info=error)
        self._refuse(session, None, "internal", f"{type(error).__name__}: {error}")

    def _refuse(self, session: int, seq: int | None, code: RequestCode, message: str) -> None:
        self._tally.count("refused", f"refused a client's message: {message}")
        if seq is None:
            self.close(session)
        self._post(self, Refused(session, seq, code, shorten(message)))
