"""A node of the radix tree: a span of tokens, and the blocks that hold their K and V."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from ..sequence import Int32

TOKEN_BYTES = 4  # of an int32


@dataclass(slots=True, eq=False)
class Node:
    """A span below its parent. The tree owns it and alone changes it.

    Tokens are whole blocks, except in a tail: a leaf with less than one block, never
    split. Children are keyed by the bytes of their first block of tokens (of a tail: all
    of them); `keys` holds the same keys in order, so that the child with the longest
    common beginning is a neighbour of where a new key would go.
    """

    tokens: Int32  # [n]
    blocks: Int32  # [ceil(n / block size)]
    parent: Node | None
    is_tail: bool = False
    is_written: bool = True
    lock_count: int = 0
    lease_count: int = 0  # leases on its end: requests to come will go on from there
    stamp: int = 0
    is_queued: bool = False  # has an entry in the queue of leaves to evict
    is_dead: bool = False
    children: dict[bytes, Node] = field(default_factory=dict)
    keys: list[bytes] = field(default_factory=list)
    # By the number of its tokens behind which they stand, whole blocks; see scores.py.
    scores: dict[int, dict[bytes, dict[int, float]]] = field(default_factory=dict)

    def key(self, block_size: int) -> bytes:
        """Give the key under which the parent holds this node."""
        return self.tokens[:block_size].tobytes()

    def add(self, child: Node, block_size: int) -> None:
        """Put `child` below this node."""
        key = child.key(block_size)
        self.children[key] = child
        insort(self.keys, key)

    def remove(self, child: Node, block_size: int) -> None:
        """Take `child` away from below this node."""
        key = child.key(block_size)
        del self.children[key]
        del self.keys[bisect_left(self.keys, key)]

    def closest(self, rest: bytes) -> tuple[Node | None, int]:
        """Find the child that begins most like `rest`, and how many tokens they share."""
        at = bisect_left(self.keys, rest)
        best, num_shared = None, 0
        for key in self.keys[max(0, at - 1) : at + 1]:
            shared = _common_tokens(key, rest)
            if shared > num_shared:
                best, num_shared = self.children[key], shared
        return best, num_shared

    def split(self, num_blocks: int, block_size: int) -> Node:
        """Cut after `num_blocks`; give the new upper part, which takes this node's place.

        This node is the lower part, so its handles stay valid; their locks count above too.
        """
        assert self.parent is not None
        cut = num_blocks * block_size
        upper = Node(
            self.tokens[:cut],
            self.blocks[:num_blocks],
            self.parent,
            is_written=self.is_written,
            lock_count=self.lock_count,
            stamp=self.stamp,
        )
        for at in [at for at in self.scores if at <= cut]:
            upper.scores[at] = self.scores.pop(at)
        self.scores = {at - cut: place for at, place in self.scores.items()}
        self.parent.children[self.key(block_size)] = upper
        self.tokens, self.blocks, self.parent = self.tokens[cut:], self.blocks[num_blocks:], upper
        upper.add(self, block_size)
        return upper

    def num_newly_locked(self) -> int:
        """Count the blocks that a lock of this node would take from the evictable ones."""
        count, step = 0, self
        while step.parent is not None and step.lock_count == 0:
            count += len(step.blocks)
            step = step.parent
        return count

    def may_absorb(self, upper: Node) -> bool:
        """True if no handle can end at `upper`, right above, so that this may take it in."""
        is_inner = upper.parent is not None and len(upper.children) == 1
        are_alike = upper.lock_count == self.lock_count and upper.is_written and self.is_written
        return is_inner and are_alike

    def absorb(self, above: list[Node], block_size: int) -> None:
        """Take in the nodes right above, from the nearest up, each with one child."""
        top = above[-1]
        assert top.parent is not None
        top.parent.remove(top, block_size)
        chain = [*reversed(above), self]
        starts = [0, *accumulate(len(node.tokens) for node in chain)]
        self.scores = {
            start + at: place
            for node, start in zip(chain, starts, strict=False)
            for at, place in node.scores.items()
        }
        self.tokens = np.concatenate([node.tokens for node in chain])
        self.blocks = np.concatenate([node.blocks for node in chain])
        self.parent, self.stamp = top.parent, top.stamp
        top.parent.add(self, block_size)
        for node in above:
            node.is_dead, node.children, node.scores = True, {}, {}

    def __repr__(self) -> str:
        kind = "tail" if self.is_tail else "node"
        return f"<{kind} {len(self.tokens)} tokens, lock {self.lock_count}>"


def common_len(a: Int32, b: Int32) -> int:
    """Count the tokens that `a` and `b` begin with alike."""
    length = min(len(a), len(b))
    if not length:
        return 0
    differs = a[:length] != b[:length]
    first = int(differs.argmax())
    return first if differs[first] else length


def _common_tokens(a: bytes, b: bytes) -> int:
    length = min(len(a), len(b)) // TOKEN_BYTES
    left, right = np.frombuffer(a, np.int32, length), np.frombuffer(b, np.int32, length)
    return common_len(left, right)
