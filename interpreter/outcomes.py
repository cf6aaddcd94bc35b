"""What is known of the nodes of one run, and which failures its author has seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from .backend import Done, Failed
from .failures import Outcome


class Outcomes:
    """The outcomes of a run's nodes, in order of time. The driver adds to them, under its lock."""

    def __init__(self) -> None:
        self._by_node: dict[int, Outcome] = {}
        self._failures: list[Failed] = []
        self._handled: set[int] = set()

    @property
    def by_node(self) -> Mapping[int, Outcome]:
        """Give the outcomes by node; grows as the run does."""
        return MappingProxyType(self._by_node)

    @property
    def num_failures(self) -> int:
        """Give how many nodes have failed so far."""
        return len(self._failures)

    def add(self, outcome: Outcome) -> None:
        """Note how a node ended; the first outcome of a node counts."""
        if outcome.node not in self._by_node:
            self._by_node[outcome.node] = outcome
            if isinstance(outcome, Failed):
                self._failures.append(outcome)

    def missing(self, nodes: Iterable[int]) -> list[int]:
        """Give those of `nodes` that have not ended."""
        return [node for node in nodes if node not in self._by_node]

    def failures(self, nodes: Iterable[int]) -> list[Failed]:
        """Give the failures among `nodes`, the first one first."""
        if not self._failures:
            return []
        wanted = set(nodes)
        return [failure for failure in tuple(self._failures) if failure.node in wanted]

    def has_failed(self, nodes: set[int], num_known: int = 0) -> bool:
        """Say whether one of `nodes` has failed, the first `num_known` failures not counted."""
        return any(failure.node in nodes for failure in self._failures[num_known:])

    def cause(self, failure: Failed, nodes: Iterable[int]) -> Failed:
        """Give the failure where this one began, if that is among `nodes`."""
        origin = self._by_node.get(failure.origin)
        return origin if isinstance(origin, Failed) and origin.node in set(nodes) else failure

    def done(self, nodes: Iterable[int]) -> list[Done]:
        """Give the outcomes of those of `nodes` that came to their end."""
        found = (self._by_node.get(node) for node in nodes)
        return [outcome for outcome in found if isinstance(outcome, Done)]

    def handle(self, nodes: Iterable[int]) -> None:
        """Count what became of these nodes as seen, and where it began as well."""
        nodes = tuple(nodes)
        self._handled.update(nodes)
        self._handled.update(failure.origin for failure in self.failures(nodes))

    def is_handled(self, node: int, origin: int | None = None) -> bool:
        """Say whether the author has seen what became of a node, or of where it began."""
        return node in self._handled or origin in self._handled
