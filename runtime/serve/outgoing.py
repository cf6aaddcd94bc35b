"""What a client has yet to send: in order, and segments only on credit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ..protocol import Cancel, ClientMessage, Close, Submit


class Outgoing:
    """Two queues: what may go now, and segments that wait for a credit.

    The owner locks; nothing here blocks. `peek` and `pop` give the messages in an order
    that keeps each session's own, but lets a session that needs no credit pass the others.
    """

    def __init__(self) -> None:
        self._free: deque[ClientMessage] = deque()
        self._on_credit: deque[Submit | Cancel] = deque()
        self._waiting: dict[int, int] = {}  # session -> its messages in _on_credit
        self._sent: dict[int, int] = {}  # session -> last segment on its way
        self._unfinished: dict[int, dict[int, int]] = {}  # session -> segment -> bytes
        self._num_unfinished = 0
        self._unfinished_bytes = 0
        self._credits = 0
        self._credit_bytes = 0

    @property
    def num_unfinished(self) -> int:
        """Count the segments that were sent and have no end yet."""
        return self._num_unfinished

    def grant(self, credits: int, credit_bytes: int) -> None:
        """Set how many segments and bytes may be unfinished at a time."""
        self._credits = credits
        self._credit_bytes = credit_bytes

    def put(self, message: ClientMessage, after: int = -1) -> None:
        """Queue a message; a Cancel goes once segment `after` of its session has gone."""
        match message:
            case Submit():
                self._wait(message)
                return
            case Cancel() if after > self._sent.get(message.session, -1):
                self._wait(message)
                return
            case Close():
                self.forget(message.session)
            case _:
                pass
        self._free.append(message)

    def peek(self) -> ClientMessage | None:
        """Give the next message that may go, None if there is none."""
        if self._free:
            return self._free[0]
        while self._on_credit and self._on_credit[0].session not in self._waiting:
            self._on_credit.popleft()  # its session is closed
        if not self._on_credit:
            return None
        first = self._on_credit[0]
        if isinstance(first, Submit) and not self._has_credit(first):
            return None
        return first

    def pop(self) -> None:
        """Take away what `peek` gave: it is on its way."""
        if self._free:
            self._free.popleft()
            return
        message = self._on_credit.popleft()
        self._waiting[message.session] -= 1
        if not self._waiting[message.session]:
            del self._waiting[message.session]
        if isinstance(message, Submit):
            size = len(message.payload)
            self._sent[message.session] = message.seq
            self._unfinished.setdefault(message.session, {})[message.seq] = size
            self._num_unfinished += 1
            self._unfinished_bytes += size

    def give_back(self, session: int, segments: Iterable[int]) -> None:
        """Free the credits of finished segments."""
        held = self._unfinished.get(session, {})
        for seq in segments:
            size = held.pop(seq, None)
            if size is not None:
                self._num_unfinished -= 1
                self._unfinished_bytes -= size
        if not held:
            self._unfinished.pop(session, None)

    def forget(self, session: int) -> None:
        """Drop what a session has waiting, and free its credits."""
        self._waiting.pop(session, None)
        self._sent.pop(session, None)
        self.give_back(session, tuple(self._unfinished.get(session, {})))

    def _wait(self, message: Submit | Cancel) -> None:
        self._on_credit.append(message)
        self._waiting[message.session] = self._waiting.get(message.session, 0) + 1

    def _has_credit(self, message: Submit) -> bool:
        if self._num_unfinished >= self._credits:
            return False
        size = self._unfinished_bytes + len(message.payload)
        return not self._num_unfinished or size <= self._credit_bytes
