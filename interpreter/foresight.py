"""What the nodes of a run say of the future of its requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..lang.graph import Node
from ..lang.ops import Gen, Sampling, Select
from ..runtime.sequence import Hint

GUESS = 64  # tokens of a gen without a limit


class Foresight:
    """The hints for the gens and selects of one run, from the segments that it has submitted.

    `name` gives the id of a node's request.
    """

    def __init__(self, defaults: Sampling, name: Callable[[int], str]) -> None:
        self._default = defaults.max_tokens
        self._name = name
        self._ends: dict[int, int | None] = {}  # the gen or select that a node's text ends with
        self._num_consumers: dict[int, int] = {}
        self._remaining: dict[int, int] = {}

    def add(self, nodes: Sequence[Node]) -> None:
        """Look at a segment; its nodes' hints can be asked for from now on."""
        for node in nodes:
            end = None if node.prev is None else self._ends.get(node.prev)
            if isinstance(node.op, Gen | Select):
                if end is not None:
                    self._num_consumers[end] = self._num_consumers.get(end, 0) + 1
                end = node.id
            self._ends[node.id] = end
        for node in reversed(nodes):  # every edge points back
            way = self._remaining.get(node.id, 0) + self._num_tokens(node)
            self._remaining[node.id] = way
            for source in (*node.reads, *(() if node.prev is None else (node.prev,))):
                self._remaining[source] = max(self._remaining.get(source, 0), way)

    def hint(self, node: Node) -> Hint:
        """Give the hint for the request of a gen or select."""
        end = None if node.prev is None else self._ends.get(node.prev)
        return Hint(
            None if end is None else self._name(end),
            self._num_consumers.get(node.id, 0),
            self._remaining.get(node.id, 0),
        )

    def _num_tokens(self, node: Node) -> int:
        if not isinstance(node.op, Gen):
            return int(isinstance(node.op, Select))
        own = node.op.sampling.max_tokens
        most = self._default if own is None else own
        return GUESS if most is None else most
