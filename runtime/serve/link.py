"""A client's link to a worker: one DEALER, one thread, all sessions of the process.

Any thread may call; the calls only queue, and wake the link's thread. The handlers are
called on the link's thread. A link is used once: when the worker is gone, every session
is told so, and a new link must be made.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, assert_never

import zmq

from ..errors import LinkError
from ..protocol import (
    VERSION,
    Bye,
    Cancel,
    Close,
    Codec,
    Events,
    Heartbeat,
    Hello,
    Open,
    Ping,
    ProtocolError,
    Refused,
    Submit,
    Welcome,
    WorkerMessage,
)
from .endpoint import dial
from .outgoing import Outgoing
from .progress import STUCK_S, Progress
from .waker import Waker

PING_S = 0.5
HELLO_S = 1.0  # a Hello may fall into a restart of the worker
SILENCE_S = 2.5  # no heartbeat for this long: the worker is dead
LINGER_MS = 200
JOIN_S = 3.0


class SessionHandler(Protocol):
    """Gets what the worker says to one session, on the link's thread; must return quickly."""

    def on_events(self, payload: bytes) -> None:
        """Take answers."""
        ...

    def on_refused(self, seq: int | None, code: str, message: str) -> None:
        """Learn that a segment was refused; or, without `seq`, that the session is over."""
        ...

    def on_lost(self, error: LinkError) -> None:
        """Learn that the worker is gone; nothing else comes after it."""
        ...


class Link:
    """One connection. A worker that owes answers and makes no step for `stuck_s` is gone."""

    def __init__(
        self, endpoint: str, *, keys: Path | None = None, stuck_s: float = STUCK_S
    ) -> None:
        self.endpoint = endpoint
        self.description = b""
        self._context = zmq.Context()
        try:
            self._socket = dial(self._context, endpoint, keys)
        except LinkError:
            self._context.term()
            raise
        self._waker = Waker()
        self._lock = threading.Lock()  # guards what other threads touch: the next seven
        self._welcome = threading.Condition(self._lock)
        self._epoch: str | None = None
        self._error: LinkError | None = None
        self._handlers: dict[int, SessionHandler] = {}
        self._outgoing = Outgoing()
        self._calls: deque[Callable[[], None]] = deque()
        self._ids = itertools.count()
        self._codec = Codec()
        self._progress = Progress(stuck_s)
        self._last_heard_s = 0.0
        self._thread = threading.Thread(target=self._run, name="plait-link", daemon=True)

    @property
    def error(self) -> LinkError | None:
        """Why the link is over; None while it is not."""
        with self._lock:
            return self._error

    def connect(self, timeout_s: float) -> None:
        """Start, and wait for the worker's welcome. Raises: LinkError."""
        self._thread.start()
        with self._welcome:
            is_settled = self._welcome.wait_for(
                lambda: self._epoch is not None or self._error is not None, timeout_s
            )
            error = self._error
        if not is_settled:
            error = LinkError(f"{self.endpoint}: no plait runtime answers within {timeout_s:g} s")
        if error is not None:
            self.close()
            raise error

    def open(self, payload: bytes, handler: SessionHandler) -> int:
        """Start a session; give its id. Raises: LinkError if the link is over."""
        with self._lock:
            if self._error is not None:
                raise self._error
            session = next(self._ids)
            self._handlers[session] = handler
            self._outgoing.put(Open(session, payload))
        self._waker.wake()
        return session

    def submit(self, session: int, seq: int, payload: bytes) -> None:
        """Send a segment, as soon as there is a credit for it."""
        self._put(Submit(session, seq, payload))

    def cancel(self, session: int, payload: bytes, after: int) -> None:
        """Stop a part of a session, once its segment `after` has been sent."""
        self._put(Cancel(session, payload), after)

    def close_session(self, session: int) -> None:
        """End a session; its handler is called no more. Idempotent."""
        with self._lock:
            if self._handlers.pop(session, None) is None:
                return
            self._outgoing.put(Close(session))
        self._waker.wake()

    def post(self, call: Callable[[], None]) -> None:
        """Run `call` on the link's thread; it is dropped if the link is over."""
        self._calls.append(call)
        self._waker.wake()

    def fail(self, error: LinkError) -> None:
        """End the link because the worker is known to be gone. Idempotent."""
        with self._welcome:
            if self._error is None:
                self._error = error
            self._welcome.notify_all()
        self._waker.wake()

    def close(self) -> None:
        """End the link; open sessions are told. Idempotent; bounded."""
        self.fail(LinkError(f"{self.endpoint}: the link was closed"))
        if self._thread.ident is None:
            self._release()
        elif self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    def _put(self, message: Submit | Cancel, after: int = -1) -> None:
        with self._lock:
            if message.session not in self._handlers:
                return
            self._outgoing.put(message, after)
        self._waker.wake()

    def _run(self) -> None:
        """Be the link's thread, until the link is over."""
        try:
            self._serve()
        except Exception as error:
            self.fail(LinkError(f"{self.endpoint}: the link broke ({error})"))
            raise
        finally:
            self._end()

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._waker, zmq.POLLIN)
        next_ping_s = 0.0
        while self.error is None:
            now = time.monotonic()
            if now >= next_ping_s:
                self._ping()
                next_ping_s = now + (PING_S if self._epoch is not None else HELLO_S)
            is_writing = self._flush()
            poller.register(self._socket, zmq.POLLIN | (zmq.POLLOUT if is_writing else 0))
            until_s = next_ping_s
            if self._epoch is not None:
                until_s = min(until_s, self._last_heard_s + SILENCE_S)
            ready = dict(poller.poll(max(0, int((until_s - time.monotonic()) * 1000) + 1)))
            if self._waker.fileno() in ready:
                self._waker.clear()
            while self._calls:
                self._calls.popleft()()
            self._drain()
            # Only now: what had arrived was heard, however late this thread got to it.
            if self._epoch is not None and time.monotonic() - self._last_heard_s > SILENCE_S:
                self.fail(LinkError(f"{self.endpoint}: the runtime has been silent for 2.5 s"))

    def _ping(self) -> None:
        with self._lock:
            self._outgoing.put(Ping() if self._epoch is not None else Hello(VERSION))

    def _flush(self) -> bool:
        """Send what libzmq takes; True if something is left for later."""
        with self._lock:
            while (message := self._outgoing.peek()) is not None:
                try:
                    self._socket.send(self._codec.encode(message), zmq.NOBLOCK)
                except zmq.Again:
                    return True
                self._outgoing.pop()
        return False

    def _drain(self) -> None:
        while self.error is None:
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._last_heard_s = time.monotonic()
            try:
                self._on_message(self._codec.from_worker(b"".join(frames)))
            except ProtocolError as error:
                self.fail(LinkError(f"{self.endpoint}: the runtime sent {error}"))

    def _on_message(self, message: WorkerMessage) -> None:
        match message:
            case Welcome():
                self._on_welcome(message)
            case Events():
                self._progress.note_answer()
                with self._lock:
                    self._outgoing.give_back(message.session, message.finished)
                    handler = self._handlers.get(message.session)
                if handler is not None and message.payload:
                    handler.on_events(message.payload)
            case Refused():
                self._on_refused(message)
            case Heartbeat():
                self._on_heartbeat(message)
            case Bye():
                self.fail(LinkError(f"{self.endpoint}: {message.reason}"))
            case _:
                assert_never(message)

    def _on_welcome(self, message: Welcome) -> None:
        if self._epoch is not None:
            self._check_epoch(message.epoch)
            return
        with self._welcome:
            self.description = message.description
            self._outgoing.grant(message.credits, message.credit_bytes)
            self._epoch = message.epoch
            self._welcome.notify_all()

    def _check_epoch(self, epoch: str) -> None:
        if self._epoch is not None and epoch != self._epoch:
            self.fail(LinkError(f"{self.endpoint}: the runtime was restarted"))

    def _on_heartbeat(self, beat: Heartbeat) -> None:
        self._check_epoch(beat.epoch)
        num_owed = self._outgoing.num_unfinished
        if problem := self._progress.check(beat.num_steps, num_owed, time.monotonic()):
            self.fail(LinkError(f"{self.endpoint}: the runtime lives, but {problem}"))

    def _on_refused(self, message: Refused) -> None:
        with self._lock:
            handler = self._handlers.get(message.session)
            if message.seq is not None:
                self._outgoing.give_back(message.session, (message.seq,))
            else:
                self._outgoing.forget(message.session)
                self._handlers.pop(message.session, None)
        if handler is not None:
            handler.on_refused(message.seq, message.code, message.message)

    def _end(self) -> None:
        """Tell the worker and every session, then give the socket back."""
        with contextlib.suppress(zmq.ZMQError):
            bye = Bye(self._epoch or "", "the client leaves")
            self._socket.send(self._codec.encode(bye), zmq.NOBLOCK)
        with self._lock:
            handlers = tuple(self._handlers.values())
            self._handlers.clear()
            error = self._error
        assert error is not None
        for handler in handlers:
            handler.on_lost(error)
        self._release()

    def _release(self) -> None:
        self._socket.close(linger=LINGER_MS)
        self._context.term()
        self._waker.close()
