"""What is sent of a run: not what is refused here, and not yet what waits for a capture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..lang.errors import Invalid, Truncated
from ..lang.graph import Node
from ..lang.ops import Source, Text, Value
from .backend import Done, Failed
from .failures import Outcome
from .screen import refusal
from .values import Values


class Outbox:
    """Keeps nodes back until the captures that they use are read, in order of id.

    Captures are read at the client, so a use of one is sent as text. `outcomes` are those of
    the run so far, and `values` what has been read of them; both grow behind the outbox, which
    reads nothing itself. Not thread-safe.
    """

    def __init__(self, outcomes: Mapping[int, Outcome], values: Mapping[int, Values]) -> None:
        self._outcomes = outcomes
        self._values = values
        self._held: list[Node] = []
        self._failed: dict[int, Failed] = {}

    def release(self, segment: Iterable[Node] = ()) -> tuple[list[Node], list[Failed]]:
        """Give the nodes to send now, of those held and of `segment`, and those that fail."""
        failures = [failure for node in segment if (failure := self._admit(node)) is not None]
        pending, self._held = self._held, []
        held: set[int] = set()
        sendable: list[Node] = []
        for node in pending:
            found = self._decided(node, held)
            if found is None:
                held.add(node.id)
                self._held.append(node)
            elif isinstance(found, Failed):
                failures.append(self._fail(found))
            else:
                sendable.append(found)
        return sendable, failures

    def unread(self) -> list[Done]:
        """Give the outcomes that are to be read before more can be sent."""
        uses = [node.op.source for node in self._held if isinstance(node.op, Value)]
        sources = dict.fromkeys(source.node for source in uses if source.capture is not None)
        outcomes = [self._outcomes.get(source) for source in sources]
        return [o for o in outcomes if isinstance(o, Done) and o.node not in self._values]

    def cancel(self, nodes: Sequence[int]) -> list[Failed]:
        """Fail the held ones among `nodes`, and what follows them."""
        wanted = set(nodes)
        message = "cancelled before it was done"
        failures: list[Failed] = []
        kept: list[Node] = []
        for node in self._held:
            own = Failed(node.id, "cancelled", message, node.id) if node.id in wanted else None
            failure = own or self._inherited(node)
            if failure is None:
                kept.append(node)
            else:
                failures.append(self._fail(failure))
        self._held = kept
        return failures

    def _admit(self, node: Node) -> Failed | None:
        """Hold a new node; or give its failure, if that is known already."""
        failure = self._inherited(node) or refusal(node)
        if failure is None:
            self._held.append(node)
            return None
        return self._fail(failure)

    def _decided(self, node: Node, held: set[int]) -> Node | Failed | None:
        """Give the node to send, or its failure, or None if it has to wait."""
        if (failure := self._inherited(node)) is not None:
            return failure
        if held and not held.isdisjoint(_sources(node)):
            return None
        source = node.op.source if isinstance(node.op, Value) else None
        if source is None or source.capture is None:
            return node
        if isinstance(self._outcomes.get(source.node), Failed):
            # The backend says so of this one as of all that follow.
            return replace(node, op=Value(Source(source.node)))
        values = self._values.get(source.node)
        if values is None:
            return None
        try:
            text = values.text(source.capture)
        except (Truncated, Invalid) as fault:
            return Failed(node.id, str(fault.code), str(fault), source.node)
        return replace(node, op=Text(text), reads=())

    def _fail(self, failure: Failed) -> Failed:
        self._failed[failure.node] = failure
        return failure

    def _inherited(self, node: Node) -> Failed | None:
        if not self._failed:
            return None
        causes = (self._failed.get(source) for source in _sources(node))
        cause = next((cause for cause in causes if cause is not None), None)
        return cause and Failed(node.id, cause.code, cause.message, cause.origin)


def _sources(node: Node) -> tuple[int, ...]:
    return node.reads if node.prev is None else (node.prev, *node.reads)
