"""The leaves that may be evicted, least recently used first."""

from __future__ import annotations

import heapq
from itertools import count

from .node import Node


class LeafQueue:
    """A heap of unlocked leaves. Entries that went stale are dropped or renewed when met."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Node]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, node: Node) -> None:
        """Add `node` if it can be evicted and is not here yet."""
        if not node.is_queued and is_evictable(node):
            node.is_queued = True
            heapq.heappush(self._heap, (node.stamp, next(self._order), node))

    def pop(self) -> Node | None:
        """Take out the least recently used leaf that can be evicted, None if there is none."""
        while self._heap:
            stamp, _, node = heapq.heappop(self._heap)
            node.is_queued = False
            if not is_evictable(node):
                continue
            if node.stamp == stamp:
                return node
            self.push(node)
        return None

    def prune(self) -> None:
        """Drop entries of nodes that are gone."""
        self._heap = [entry for entry in self._heap if not entry[2].is_dead]
        heapq.heapify(self._heap)


def is_evictable(node: Node) -> bool:
    """True for a leaf of the tree (not a root) that nobody has locked."""
    is_leaf = not node.children and node.parent is not None
    return is_leaf and node.lock_count == 0 and not node.is_dead
