"""The record of a run: every node and fork in the order in which the program wrote them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from .errors import ProgramError
from .graph import Fork, ForkKind, Node, Where
from .ops import Op
from .order import by_place, in_order


class Tape:
    """Nodes in order of id. Owned by one run, written by all its branches; thread-safe."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._forks: list[Fork] = []
        self._places: dict[str, int] = {}  # of the forks
        self._replaced: dict[str, Exception | None] = {}
        self._is_concurrent = False
        self._num_taken = 0
        self._is_closed = False
        self._lock = threading.Lock()

    def append(
        self,
        op: Op,
        *,
        prev: int | None,
        reads: tuple[int, ...] = (),
        branch: str = "",
        where: Where | None = None,
    ) -> Node:
        """Record one node and give it its id.

        Raises: ProgramError once the tape is closed.
        """
        with self._lock:
            self._check_open(where)
            node = Node(len(self._nodes), op, prev, reads, branch, where)
            self._nodes.append(node)
            return node

    def fork(
        self,
        path: str,
        width: int,
        where: Where | None = None,
        *,
        kind: ForkKind = "fork",
        place: int = 0,
        is_concurrent: bool = False,
    ) -> None:
        """Record a fork and its number of branches.

        `place` is the number of nodes that its own branch had then. After a concurrent one the
        order of recording is that of time, and `ordered` gives the program's.

        Raises: ProgramError once the tape is closed.
        """
        with self._lock:
            self._check_open(where)
            self._forks.append(Fork(path, width, kind))
            self._places[path] = place
            self._is_concurrent = self._is_concurrent or is_concurrent

    def replace(self, branch: str, value: Exception | None) -> None:
        """Let a join have `value` in the place of a branch's variables: it has failed."""
        self._replaced[branch] = value

    @property
    def replaced(self) -> Mapping[str, Exception | None]:
        """Give what stands for the variables of branches that failed, by path."""
        return self._replaced

    @property
    def lost_branches(self) -> frozenset[str]:
        """Give the branches that failed, and whose failure the author took as a value."""
        again = (fork.path.rpartition("/")[0] for fork in self.forks if fork.kind == "retry")
        return frozenset([*self._replaced, *again])

    def ordered(self) -> tuple[tuple[Node, ...], tuple[Fork, ...]]:
        """Give nodes and forks in an order that follows from the program, not from time."""
        with self._lock:
            nodes, forks = tuple(self._nodes), tuple(self._forks)
        return self.arranged(nodes, forks)

    def arranged(
        self, nodes: tuple[Node, ...], forks: tuple[Fork, ...]
    ) -> tuple[tuple[Node, ...], tuple[Fork, ...]]:
        """Give some of this tape's nodes and forks in that order, with ids of their own."""
        return in_order(nodes, forks, self._places) if self._is_concurrent else (nodes, forks)

    def by_place(self) -> Sequence[Node]:
        """Give the nodes in that order, with the ids that they have in this run."""
        return by_place(self.nodes, self._places) if self._is_concurrent else self.nodes

    def take(self) -> tuple[Node, ...]:
        """Give what was recorded since the last take: the next segment."""
        with self._lock:
            taken = tuple(self._nodes[self._num_taken :])
            self._num_taken = len(self._nodes)
            return taken

    def close(self) -> None:
        """End the recording: every later append raises. Idempotent."""
        with self._lock:
            self._is_closed = True

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Give all nodes recorded so far."""
        with self._lock:
            return tuple(self._nodes)

    @property
    def forks(self) -> tuple[Fork, ...]:
        """Give all forks recorded so far."""
        with self._lock:
            return tuple(self._forks)

    def node(self, node_id: int) -> Node:
        """Give the node with this id."""
        return self._nodes[node_id]

    def __len__(self) -> int:
        return len(self._nodes)

    def _check_open(self, where: Where | None) -> None:
        if self._is_closed:
            place = "" if where is None else f"{where}: "
            raise ProgramError(
                f"{place}this run is finished, its states can only be read; "
                "start a new run to go on"
            )
