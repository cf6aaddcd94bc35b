"""The record of a run: every node and fork in the order in which the program wrote them."""

from __future__ import annotations

import threading

from .errors import ProgramError
from .graph import Fork, Node, Where
from .ops import Op


class Tape:
    """Nodes in order of id. Owned by one run, written by all its branches; thread-safe."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._forks: list[Fork] = []
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

    def fork(self, path: str, width: int, where: Where | None = None) -> None:
        """Record a fork and its number of branches.

        Raises: ProgramError once the tape is closed.
        """
        with self._lock:
            self._check_open(where)
            self._forks.append(Fork(path, width))

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
