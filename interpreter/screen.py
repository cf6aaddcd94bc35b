"""What need not be sent: nodes with a constraint that is none, and all that depends on them."""

from __future__ import annotations

from collections.abc import Iterable

from ..lang.graph import Node
from ..lang.ops import Gen
from ..lang.words import spell
from .backend import Failed
from .captures import constraint_fault


class Screen:
    """Refuses nodes on the client's side. Its owner calls it with segments in order."""

    def __init__(self) -> None:
        self._refused: dict[int, Failed] = {}

    def split(self, segment: Iterable[Node]) -> tuple[list[Node], list[Failed]]:
        """Give the nodes to send, and the failures of the others."""
        sendable: list[Node] = []
        failures: list[Failed] = []
        for node in segment:
            failure = self._failure(node)
            if failure is None:
                sendable.append(node)
            else:
                self._refused[node.id] = failure
                failures.append(failure)
        return sendable, failures

    def _failure(self, node: Node) -> Failed | None:
        if self._refused:
            for source in (node.prev, *node.reads):
                cause = None if source is None else self._refused.get(source)
                if cause is not None:
                    return Failed(node.id, cause.code, cause.message, cause.origin)
        if isinstance(node.op, Gen) and node.op.constraint is not None:
            fault = constraint_fault(node.op.constraint, node.op.captures)
            if fault is not None:
                code, reason = fault
                return Failed(node.id, code, f"{spell(node.op)}: {reason}", node.id)
        return None
