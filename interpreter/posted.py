"""A session that lives on one thread, for callers on any."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..lang.graph import Node
from .backend import Done, Listener, NodeEvent, Session

_log = logging.getLogger(__name__)

Post: TypeAlias = Callable[[Callable[[], None]], None]


class PostedSession:
    """A run, as other threads see it: each call is posted to the thread of its session.

    `forget` takes this out of the backend's open sessions, and says whether it was there: so
    each one is lost at most once.
    """

    def __init__(
        self,
        run_id: str,
        listener: Listener,
        on_lost: Callable[[Exception], None],
        post: Post,
        forget: Callable[[PostedSession], bool],
    ) -> None:
        self._run_id = run_id
        self._listener = listener
        self._on_lost = on_lost
        self._post = post
        self._forget = forget
        self._inner: Session | None = None  # that thread's
        self._is_open = True

    def start(self, open_session: Callable[[Listener], Session]) -> None:
        """Open the session on its thread."""

        def start() -> None:
            self._inner = open_session(self._listen)

        self._post(start)

    def submit(self, nodes: Sequence[Node], known: Sequence[Done] = ()) -> None:
        """Add a segment."""
        segment, done = tuple(nodes), tuple(known)
        self._call(lambda session: session.submit(segment, done))

    def cancel(self, nodes: Sequence[int]) -> None:
        """Stop these nodes and all that depend on them; idempotent."""
        ids = tuple(nodes)
        self._call(lambda session: session.cancel(ids))

    def close(self) -> None:
        """Stop everything, give all resources back; idempotent."""
        self._is_open = False
        self._forget(self)
        self._call(lambda session: session.close())

    def mute(self) -> None:
        """Give the run no more events."""
        self._is_open = False

    def lose(self, error: Exception) -> None:
        """Tell the run that its backend is gone; no event comes after it."""
        self.mute()
        self._on_lost(error)

    def _call(self, act: Callable[[Session], None]) -> None:
        def call() -> None:
            assert self._inner is not None, "start was posted first"
            act(self._inner)

        self._post(call)

    def _listen(self, events: Sequence[NodeEvent]) -> None:
        if not self._is_open:
            return
        try:
            self._listener(events)
        except Exception as error:
            # A listener is its run's own: one that fails loses that run, and no other.
            _log.exception("the listener of run %s raised", self._run_id)
            self._call(lambda session: session.close())
            if self._forget(self):
                self.lose(error)
