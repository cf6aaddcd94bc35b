"""Events that come while the driver is about to wait for them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from plait import NodeError, State, function, gen
from plait.interpreter.backend import Failed, NodeEvent
from plait.lang.graph import Node

from .test_driver import FakeBackend, FakeSession


def test_a_failure_that_comes_before_the_wait_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(session: FakeSession, nodes: Sequence[Node]) -> None:
        session._answer(tuple(nodes))

    def answer(node: Node) -> NodeEvent | None:
        return Failed(node.id, "internal", "boom", node.id) if node.branch == "0.1" else None

    @function
    def joins(s: State) -> None:
        forks = s.fork(2)
        forks += gen("o")
        forks.join()

    monkeypatch.setattr(FakeSession, "submit", submit)
    with pytest.raises(NodeError, match="boom"):
        joins.run(backend=FakeBackend(answer))
