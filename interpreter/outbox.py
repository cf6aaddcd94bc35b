"""What is sent of a run: not what is refused here, and not yet what waits for a capture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ..lang.errors import Invalid, Truncated
from ..lang.graph import Node
from ..lang.ops import Source, Text, Value
from .backend import Done, Failed
from .failures import Outcome
from .screen import Screen


class Outbox:
    """Keeps nodes back until the captures that they use are read, in order of id.

    Captures are read at the client, so a use of one is sent as text. Not thread-safe. `read`
    gives the text of a capture, or raises Truncated or Invalid.
    """

    def __init__(self, read: Callable[[Done, str], str]) -> None:
        self._read = read
        self._screen = Screen()
        self._nodes: list[Node] = []
        self._failed: dict[int, Failed] = {}

    def release(
        self, segment: Iterable[Node], outcomes: Mapping[int, Outcome]
    ) -> tuple[list[Node], list[Failed]]:
        """Give the nodes to send now, of those held and of `segment`, and those that fail."""
        passed, failures = self._screen.split(segment)
        pending, self._nodes = [*self._nodes, *passed], []
        held: set[int] = set()
        sendable: list[Node] = []
        for node in pending:
            found = self._decided(node, held, outcomes)
            if found is None:
                held.add(node.id)
                self._nodes.append(node)
            elif isinstance(found, Failed):
                self._failed[node.id] = found
                failures.append(found)
            else:
                sendable.append(found)
        return sendable, failures

    def cancel(self, nodes: Sequence[int]) -> list[Failed]:
        """Fail the held ones among `nodes`, and what follows them."""
        wanted = set(nodes)
        message = "cancelled before it was done"
        for node in self._nodes:
            if node.id in wanted:
                self._failed[node.id] = Failed(node.id, "cancelled", message, node.id)
        failures: list[Failed] = []
        kept: list[Node] = []
        for node in self._nodes:
            failure = self._failed.get(node.id) or self._inherited(node)
            if failure is None:
                kept.append(node)
            else:
                self._failed[node.id] = failure
                failures.append(failure)
        self._nodes = kept
        return failures

    def _decided(
        self, node: Node, held: set[int], outcomes: Mapping[int, Outcome]
    ) -> Node | Failed | None:
        """Give the node to send, or its failure, or None if it has to wait."""
        if self._failed and (failure := self._inherited(node)) is not None:
            return failure
        if held and not held.isdisjoint(_sources(node)):
            return None
        if not isinstance(node.op, Value) or node.op.source.capture is None:
            return node
        source = node.op.source
        outcome = outcomes.get(source.node)
        if outcome is None:
            return None
        if isinstance(outcome, Failed):  # the backend says so of this one as of all that follow
            return replace(node, op=Value(Source(source.node)))
        try:
            text = self._read(outcome, node.op.source.capture)
        except (Truncated, Invalid) as fault:
            return Failed(node.id, str(fault.code), str(fault), source.node)
        return replace(node, op=Text(text), reads=())

    def _inherited(self, node: Node) -> Failed | None:
        causes = (self._failed.get(source) for source in _sources(node))
        cause = next((cause for cause in causes if cause is not None), None)
        return cause and Failed(node.id, cause.code, cause.message, cause.origin)


def _sources(node: Node) -> tuple[int, ...]:
    return node.reads if node.prev is None else (node.prev, *node.reads)
