"""What a run hears from its backend, for tests that wait on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from plait.interpreter.backend import (
    Backend,
    Delta,
    Done,
    Failed,
    NodeEvent,
    Session,
    SessionConfig,
)
from plait.lang.graph import Node
from plait.lang.ops import Gen, Sampling, Text

SCRIPTS = Path(__file__).parent / "scripts.py"
GREEDY = Sampling(temperature=0.0)


class Heard:
    """A listener, and the `on_lost` beside it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.events: list[NodeEvent] = []
        self.lost: list[Exception] = []

    def listen(self, events: Sequence[NodeEvent]) -> None:
        """Keep events."""
        with self._changed:
            self.events.extend(events)
            self._changed.notify_all()

    def on_lost(self, error: Exception) -> None:
        """Keep the reason."""
        with self._changed:
            self.lost.append(error)
            self._changed.notify_all()

    def wait(self, predicate: Callable[[], bool], timeout_s: float = 20) -> None:
        """Wait until the predicate holds."""
        with self._changed:
            assert self._changed.wait_for(predicate, timeout_s), (self.events[-5:], self.lost)

    def wait_for_text(self) -> None:
        """Wait for the first piece of streamed text."""
        self.wait(lambda: any(isinstance(event, Delta) for event in self.events))

    def value(self, node: int) -> str:
        """Wait for a node, which must not fail."""
        self.wait(lambda: bool(self.terminal(node)) or bool(self.lost))
        (event,) = self.terminal(node)
        assert isinstance(event, Done), event
        return event.text

    def terminal(self, node: int) -> list[Done | Failed]:
        """Give a node's terminal events."""
        events = tuple(self.events)
        return [e for e in events if isinstance(e, Done | Failed) and e.node == node]


def start(backend: Backend, text: str, *, is_streaming: bool = False) -> tuple[Session, Heard]:
    """Let the model continue a text, in node 1 of a run of its own."""
    heard = Heard()
    config = SessionConfig("run", 1, GREEDY, is_streaming)
    session = backend.open(config, heard.listen, heard.on_lost)
    session.submit([Node(0, Text(text), None), Node(1, Gen("x"), 0)])
    return session, heard
