"""What must hold of an engine between two steps. For tests and diagnosis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from .cache.blocks import BlockPool
from .cache.node import Node
from .cache.radix import RadixCache
from .errors import InvariantError
from .sequence import Sequence


def check_engine(pool: BlockPool, cache: RadixCache, sequences: Iterable[Sequence]) -> None:
    """Check references, locks and counts. Raises: InvariantError, naming what differs."""
    pool.check()
    nodes = cache.check()
    live = list(sequences)
    refs = np.zeros(pool.num_blocks, np.int32)
    for node in nodes:
        refs[node.blocks] += 1
        if not node.is_written:
            raise InvariantError(f"{node} is still planned after its step")
    in_tree = refs.copy()
    for sequence in live:
        refs[sequence.block_table.view] += 1
    wrong = np.flatnonzero(refs != pool.refs)
    if len(wrong):
        raise InvariantError(f"blocks {wrong.tolist()} have another count than their users")
    num_held = int(((refs > 0) & (in_tree == 0)).sum())
    parts = (pool.num_free, cache.num_evictable, cache.num_locked, num_held)
    if sum(parts) != pool.num_blocks:
        raise InvariantError(f"free, evictable, locked, held {parts}: not {pool.num_blocks}")
    _check_locks(nodes, live)
    for node in nodes:
        if node.lock_count == 0 and int(refs[node.blocks].max()) != 1:
            raise InvariantError(f"{node} is not locked, but its blocks are used")


def _check_locks(nodes: list[Node], sequences: list[Sequence]) -> None:
    expected: Counter[int] = Counter()
    for sequence in sequences:
        node = sequence.node
        while node is not None:
            expected[id(node)] += 1
            node = node.parent
    for node in nodes:
        if node.lock_count != expected[id(node)]:
            raise InvariantError(f"{node} should have {expected[id(node)]} locks")
