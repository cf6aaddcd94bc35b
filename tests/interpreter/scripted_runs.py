"""Runs on a scripted backend, for tests that wait for their ends."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

import plait
from plait.interpreter.backend import Backend, Delta, Done, Failed, NodeEvent, SessionConfig
from plait.interpreter.backends.scripted import ScriptedBackend
from plait.interpreter.session import ExecutorSession
from plait.lang.graph import Node
from plait.lang.ops import Op, Sampling
from plait.runtime.model.scripted import Script

GREEDY = Sampling(temperature=0.0)
RUN_IDS = itertools.count()


class Run:
    """A session whose terminal events can be waited for."""

    def __init__(self, backend: Backend, *, is_streaming: bool = False, seed: int = 1) -> None:
        self.events: list[NodeEvent] = []
        self.ends: dict[int, Done | Failed] = {}
        self.lost: list[Exception] = []
        self._changed = threading.Condition()
        config = SessionConfig(f"run-{next(RUN_IDS)}", seed, GREEDY, is_streaming)
        self.session = backend.open(config, self._listen, self._lose)

    def _listen(self, events: Sequence[NodeEvent]) -> None:
        with self._changed:
            for event in events:
                self.events.append(event)
                if isinstance(event, Done | Failed):
                    assert event.node not in self.ends
                    self.ends[event.node] = event
            self._changed.notify_all()

    def _lose(self, error: Exception) -> None:
        with self._changed:
            self.lost.append(error)
            self._changed.notify_all()

    def wait(self, num_ends: int) -> dict[int, Done | Failed]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.ends) >= num_ends or self.lost, 20)
        return self.ends

    def results(self, nodes: Sequence[Node]) -> dict[int, Done | Failed]:
        self.session.submit(nodes)
        return self.wait(len(nodes))

    def texts(self, node: int) -> list[str]:
        return [e.text for e in self.events if isinstance(e, Delta) and e.node == node]

    def wait_for_text(self, node: int, text: str) -> None:
        """Wait until what a node streamed begins with `text`."""
        with self._changed:
            assert self._changed.wait_for(lambda: "".join(self.texts(node)).startswith(text), 5)

    def text(self, nodes: Sequence[Node]) -> str:
        ends = self.results(nodes)
        assert all(isinstance(end, Done) for end in ends.values()), ends
        return "".join(ends[i].text for i in sorted(ends))  # type: ignore[union-attr]


@contextmanager
def scripted(script: Script, **options: object) -> Iterator[ScriptedBackend]:
    backend = plait.scripted(script, **options)  # type: ignore[arg-type]
    assert isinstance(backend, ScriptedBackend)
    try:
        yield backend
    finally:
        backend.close()


def chain(*ops: Op) -> list[Node]:
    return [Node(i, op, i - 1 if i else None) for i, op in enumerate(ops)]


def answer(text: str) -> str:
    """Say how long the text so far is, and how it ends."""
    return f"<{len(text)}{text[-1:]}>"


def counted_segments(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give a list that gets the number of nodes of each segment from here on."""
    segments: list[int] = []
    submit = ExecutorSession.submit

    def counting(self: ExecutorSession, nodes: Sequence[Node], known: Sequence[Done] = ()) -> None:
        segments.append(len(nodes))
        submit(self, nodes, known)

    monkeypatch.setattr(ExecutorSession, "submit", counting)
    return segments
