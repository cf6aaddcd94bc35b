"""The radix tree over cached K and V: which blocks hold which tokens."""

from __future__ import annotations

import numpy as np

from ..errors import InvariantError
from ..sequence import Int32
from .audit import check_tree
from .blocks import BlockPool
from .leaves import LeafQueue
from .match import Inserted, Match, Partial
from .node import TOKEN_BYTES, Node, common_len
from .scores import ScoreStore, count_scores

_NO_TOKENS: Int32 = np.empty(0, np.int32)


class RadixCache:
    """Cached prefixes, by namespace. Holds one reference on each of its blocks.

    A node is PLANNED from the step that will fill it until `commit`, then WRITTEN; only
    sequences of that same step may use it before. Token ids decide equality.
    After: RadixAttention, Zheng et al. 2024, section 3.
    """

    def __init__(self, pool: BlockPool, block_size: int) -> None:
        self.block_size = block_size
        self.num_blocks = 0  # in the tree
        self.num_locked = 0  # of these, under a lock
        self._pool = pool
        self._roots: dict[str, Node] = {}
        self.scores = ScoreStore(self._roots, block_size, pool.num_blocks)
        self._tails: dict[int, Node] = {}  # by block
        self._planned: list[Node] = []
        self._leaves = LeafQueue()
        self._num_nodes = 0
        self._clock = 0

    @property
    def num_evictable(self) -> int:
        """Blocks that `evict` could free."""
        return self.num_blocks - self.num_locked

    def match_prefix(self, namespace: str, tokens: Int32) -> Match:
        """Find the longest cached prefix of `tokens`.

        Splits a node if the match ends inside it, and marks the whole path as used now,
        so that suffixes are evicted before their prefixes. O(len(tokens)).
        """
        spans: list[Int32] = []
        node, at = self._walk(namespace, tokens, spans)
        child, shared = node.closest(tokens[at : at + self.block_size].tobytes())
        partial = None
        if child is not None:
            child.stamp = self._clock
            partial = Partial(child, int(child.blocks[0]), shared)
        return Match(node, _joined(spans), at, partial)

    def peek(self, namespace: str, tokens: Int32) -> int:
        """Count the cached tokens that `tokens` begins with; changes nothing."""
        node, at, data = self._roots.get(namespace), 0, tokens.tobytes()
        while node is not None:
            child = node.children.get(self._key(data, at))
            if child is None or child.is_tail:
                return at + node.closest(self._key(data, at))[1]
            shared = common_len(child.tokens, tokens[at:])
            at += shared
            if shared < len(child.tokens):
                return at
            node = child
        return 0

    def insert(
        self, namespace: str, tokens: Int32, blocks: Int32, *, is_written: bool = True
    ) -> Inserted:
        """Put `tokens`, held in `blocks`, into the tree.

        What the tree has already stays: the caller keeps its own references, and so frees
        its duplicates when it drops them. The rest gets a reference of the tree. A tail that
        the tree has in the caller's own block grows; a tail that another child covers is left out.
        """
        spans: list[Int32] = []
        node, at = self._walk(namespace, tokens, spans)
        rest, own = tokens[at:], blocks[at // self.block_size :]
        num_full = len(rest) // self.block_size
        whole = num_full * self.block_size
        if num_full:
            node = self._grow(node, rest[:whole].copy(), own[:num_full].copy(), is_written)
        if len(rest) > whole:
            node = self._insert_tail(node, rest[whole:].copy(), own[num_full:][:1], is_written)
        return Inserted(node, _joined(spans))

    def lock(self, node: Node) -> None:
        """Keep `node` and all above it from eviction. O(depth)."""
        step: Node | None = node
        while step is not None and step.parent is not None:
            if step.lock_count == 0:
                self.num_locked += len(step.blocks)
            step.lock_count += 1
            step = step.parent

    def unlock(self, node: Node) -> None:
        """Take one lock back. O(depth)."""
        step: Node | None = node
        while step is not None and step.parent is not None:
            step.lock_count -= 1
            if step.lock_count == 0:
                self.num_locked -= len(step.blocks)
                self._leaves.push(step)
            step = step.parent

    def lease(self, node: Node) -> None:
        """Let `evict` take the end of `node` after all that has no lease."""
        node.lease_count += 1

    def end_lease(self, node: Node) -> None:
        """Take one lease back."""
        node.lease_count -= 1
        if node.lease_count == 0:
            self._leaves.renew(node)

    def move_lock(self, old: Node, new: Node) -> None:
        """Move a lock. A tail that nobody else holds leaves the tree: its owner went past it."""
        self.lock(new)
        self.unlock(old)
        if old.is_tail and old.lock_count == 0 and not old.is_dead:
            self._remove(old)

    def commit(self) -> None:
        """Mark what was planned as written: the forward pass is done."""
        for node in self._planned:
            node.is_written = True
        self._planned.clear()

    def drop_planned(self) -> None:
        """Remove what was planned: the forward pass failed. Its users must be gone."""
        for node in self._planned:
            if not node.is_dead:
                self._remove_all(node)
        self._planned.clear()

    def evict(self, num_blocks: int) -> int:
        """Free at least `num_blocks`, leaves without a lease first, and of these the least
        recently used; give how many it freed.

        Takes from a leaf's end no more than is asked for.
        """
        freed = 0
        while freed < num_blocks:
            leaf = self._leaves.pop()
            if leaf is None:
                break
            wanted = min(num_blocks - freed, len(leaf.blocks))
            self._truncate(leaf, len(leaf.blocks) - wanted)
            freed += wanted
        return freed

    def compact(self, node: Node) -> None:
        """Join `node` with the single-child nodes above it that carry the same locks.

        Keeps paths short after a long decode; handles of `node` stay valid.
        """
        lower = node.parent if node.is_tail else node
        if lower is None or lower.is_dead:
            return
        chain = [lower]
        while (upper := chain[-1].parent) is not None and chain[-1].may_absorb(upper):
            chain.append(upper)
        if len(chain) > 1:
            lower.absorb(chain[1:], self.block_size)
            self._num_nodes -= len(chain) - 1
            self._leaves.push(lower)

    def reset(self) -> None:
        """Empty the tree. Raises: InvariantError by way of the pool; locks must be gone."""
        for root in list(self._roots.values()):
            for child in list(root.children.values()):
                self._remove_all(child)
        self._planned.clear()
        self._leaves.prune()
        self.scores.clear()

    def check(self) -> list[Node]:
        """Raise InvariantError unless the tree is sound; give all its nodes. O(tree)."""
        nodes = check_tree(self._roots, self.block_size, self._pool.refs)
        counts = (
            (self._num_nodes, len(nodes)),
            (self.num_blocks, sum(len(n.blocks) for n in nodes)),
            (self.num_locked, sum(len(n.blocks) for n in nodes if n.lock_count)),
            (len(self._tails), sum(n.is_tail for n in nodes)),
            (self.scores.num_scores, sum(map(count_scores, [*nodes, *self._roots.values()]))),
        )
        if any(kept != found for kept, found in counts):
            raise InvariantError(f"the tree's counts (kept, found) differ: {counts}")
        return nodes

    def _walk(self, namespace: str, tokens: Int32, spans: list[Int32]) -> tuple[Node, int]:
        """Follow `tokens` over whole blocks, splitting at the end; touch the path."""
        self._clock += 1
        node = self._root(namespace)
        at, data = 0, tokens.tobytes()
        while len(tokens) - at >= self.block_size:
            child = node.children.get(self._key(data, at))
            if child is None:
                break
            shared = common_len(child.tokens, tokens[at:]) // self.block_size
            node = child if shared == len(child.blocks) else self._split(child, shared)
            node.stamp = self._clock
            spans.append(node.blocks)
            at += len(node.tokens)
        return node, at

    def _key(self, data: bytes, at: int) -> bytes:
        return data[at * TOKEN_BYTES : (at + self.block_size) * TOKEN_BYTES]

    def _root(self, namespace: str) -> Node:
        root = self._roots.get(namespace)
        if root is None:
            root = self._roots[namespace] = Node(_NO_TOKENS, _NO_TOKENS, None)
        return root

    def _split(self, node: Node, num_blocks: int) -> Node:
        """Cut a node in two; give the upper part."""
        upper = node.split(num_blocks, self.block_size)
        self._num_nodes += 1
        if not upper.is_written:
            self._planned.append(upper)
        return upper

    def _grow(self, parent: Node, tokens: Int32, blocks: Int32, is_written: bool) -> Node:
        """Add a span below `parent`: a new node, or our own tail made longer."""
        is_tail = len(tokens) < self.block_size
        node = self._tails.pop(int(blocks[0]), None)
        if node is None:
            node = Node(tokens[:0], blocks[:0], parent)
            self._num_nodes += 1
        else:
            parent.remove(node, self.block_size)
        added = blocks[len(node.blocks) :]
        self._pool.incref(added)
        self.num_blocks += len(added)
        self.num_locked += len(added) if node.lock_count else 0
        node.tokens, node.blocks, node.is_tail = tokens, blocks, is_tail
        node.stamp, node.is_written = self._clock, is_written
        parent.add(node, self.block_size)
        if is_tail:
            self._tails[int(blocks[0])] = node
        if not is_written:
            self._planned.append(node)
        self._leaves.push(node)
        return node

    def _insert_tail(self, node: Node, tokens: Int32, block: Int32, is_written: bool) -> Node:
        _, shared = node.closest(tokens.tobytes())
        if shared == len(tokens):
            return node
        return self._grow(node, tokens, block, is_written)

    def _truncate(self, leaf: Node, num_blocks: int) -> None:
        """Free the end of an unlocked leaf, all of it if `num_blocks` is 0."""
        if num_blocks == 0:
            self._remove(leaf)
            return
        self._pool.decref(leaf.blocks[num_blocks:])
        self.num_blocks -= len(leaf.blocks) - num_blocks
        leaf.blocks = leaf.blocks[:num_blocks].copy()
        leaf.tokens = leaf.tokens[: num_blocks * self.block_size].copy()
        self.scores.forget(leaf, len(leaf.tokens))
        self._leaves.push(leaf)

    def _remove_all(self, node: Node) -> None:
        for child in list(node.children.values()):
            self._remove_all(child)
        self._remove(node)

    def _remove(self, node: Node) -> None:
        """Take an unlocked leaf out of the tree, and drop its blocks."""
        parent = node.parent
        if parent is None or node.children or node.lock_count:
            raise InvariantError(f"{node} cannot be removed: a root, inner or locked node")
        parent.remove(node, self.block_size)
        node.is_dead = True
        self.scores.forget(node)
        if node.is_tail:
            del self._tails[int(node.blocks[0])]
        self._pool.decref(node.blocks)
        self.num_blocks -= len(node.blocks)
        self._num_nodes -= 1
        self._leaves.push(parent)
        if len(self._leaves) > 2 * self._num_nodes + 64:
            self._leaves.prune()


def _joined(spans: list[Int32]) -> Int32:
    return np.concatenate(spans) if spans else _NO_TOKENS
