"""What waits in the cache for requests to come: kept longer than what nobody goes on from."""

from __future__ import annotations

from collections import OrderedDict

from .cache.node import Node
from .cache.radix import RadixCache
from .sequence import Sequence

MAX_LEASES = 4096  # of requests whose consumers have not come; the oldest end first


class Leases:
    """The leases of finished requests, by their id. Owned by the scheduler.

    A lease holds no block: what has one is evicted after all that has none.
    """

    def __init__(self, cache: RadixCache) -> None:
        self._cache = cache
        self._held: OrderedDict[str, tuple[Node, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def grant(self, sequence: Sequence, node: Node) -> None:
        """Keep what a finished sequence left at `node` for those that will go on from it."""
        count = 0 if sequence.hint is None else sequence.hint.num_consumers
        if count == 0 or sequence.request_id in self._held:
            return
        self._held[sequence.request_id] = node, count
        self._cache.lease(node)
        if len(self._held) > MAX_LEASES:
            _, (oldest, _) = self._held.popitem(last=False)
            self._cache.end_lease(oldest)

    def consume(self, sequence: Sequence) -> None:
        """Count a sequence that begins to run among those that its source waits for."""
        source = None if sequence.hint is None else sequence.hint.continues
        if source is None or source not in self._held:
            return
        node, count = self._held[source]
        if count > 1:
            self._held[source] = node, count - 1
        else:
            del self._held[source]
            self._cache.end_lease(node)
