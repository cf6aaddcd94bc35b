"""The leaves that may be evicted: those without a lease first, then the least recently used."""

from __future__ import annotations

import heapq
from itertools import count

from .node import Node


class LeafQueue:
    """A heap of unlocked leaves. Entries that went stale are dropped or renewed when met."""

    def __init__(self) -> None:
        self._heap: list[tuple[bool, int, int, Node]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, node: Node) -> None:
        """Add `node` if it can be evicted and is not here yet."""
        if not node.is_queued and is_evictable(node):
            node.is_queued = True
            is_leased = node.lease_count > 0
            heapq.heappush(self._heap, (is_leased, node.stamp, next(self._order), node))

    def renew(self, node: Node) -> None:
        """Add `node` once more: it has lost its last lease, so its entry stands too late."""
        node.is_queued = False
        self.push(node)

    def pop(self) -> Node | None:
        """Take out the leaf that shall go first, None if none can be evicted."""
        while self._heap:
            is_leased, stamp, _, node = heapq.heappop(self._heap)
            node.is_queued = False
            if not is_evictable(node):
                continue
            if (is_leased, stamp) == (node.lease_count > 0, node.stamp):
                return node
            self.push(node)
        return None

    def prune(self) -> None:
        """Drop entries of nodes that are gone."""
        self._heap = [entry for entry in self._heap if not entry[3].is_dead]
        heapq.heapify(self._heap)


def is_evictable(node: Node) -> bool:
    """True for a leaf of the tree (not a root) that nobody has locked."""
    is_leaf = not node.children and node.parent is not None
    return is_leaf and node.lock_count == 0 and not node.is_dead
