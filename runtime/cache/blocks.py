"""Which blocks of the KV pool are free, and how often the others are used."""

from __future__ import annotations

import numpy as np

from ..errors import InvariantError
from ..sequence import Int32, Ints


class BlockPool:
    """Reference counts over block ids 0 to `num_blocks` - 1; the only owner of the free list."""

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._refs = np.zeros(num_blocks, np.int32)
        self._free = list(range(num_blocks - 1, -1, -1))

    @property
    def num_free(self) -> int:
        """Blocks that nobody uses."""
        return len(self._free)

    @property
    def refs(self) -> Int32:
        """How often each block is used (a copy)."""
        return self._refs.copy()

    def allocate(self, num_blocks: int) -> Int32:
        """Take free blocks, each with one reference.

        Raises: InvariantError if there are too few.
        """
        if num_blocks > len(self._free):
            raise InvariantError(f"allocate({num_blocks}) with {len(self._free)} blocks free")
        if num_blocks == 0:
            return np.empty(0, np.int32)
        blocks = np.array(self._free[-num_blocks:], np.int32)
        del self._free[-num_blocks:]
        self._refs[blocks] = 1
        return blocks

    def incref(self, blocks: Int32) -> None:
        """Add a reference to each of `blocks` (distinct). Raises: InvariantError if one is free."""
        if len(blocks) and int(self._refs[blocks].min()) < 1:
            raise InvariantError(f"incref of a free block among {blocks.tolist()}")
        self._refs[blocks] += 1

    def decref(self, blocks: Int32) -> None:
        """Drop a reference of each of `blocks` (distinct); those without any become free.

        Raises: InvariantError, and changes nothing, if one is free already.
        """
        if not len(blocks):
            return
        left = self._refs[blocks] - 1
        if int(left.min()) < 0:
            raise InvariantError(f"double free among {blocks.tolist()}")
        self._refs[blocks] = left
        self._free.extend(blocks[left == 0].tolist())

    def share(self, table: Ints, blocks: Int32) -> None:
        """Let a table of blocks begin with `blocks`, and drop its own copies of them."""
        own = table.view[: len(blocks)]
        differs = own != blocks[: len(own)]
        added = blocks[len(own) :]
        shared = blocks[: len(own)][differs]
        self.incref(shared)
        self.incref(added)
        self.decref(own[differs])
        own[differs] = shared
        table.extend(added)

    def check(self) -> None:
        """Raise InvariantError unless free and used blocks make up the pool."""
        if len(set(self._free)) != len(self._free):
            raise InvariantError("a block is twice on the free list")
        if sorted(self._free) != np.flatnonzero(self._refs == 0).tolist():
            raise InvariantError("the free list is not the set of blocks without references")
