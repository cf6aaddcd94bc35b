"""Log-probabilities kept in the radix tree: P(token | what stands before it), for the next asker.

A score stands where the whole blocks of the text before it end: at the node that holds the
last of them, or at the root. What follows these blocks, less than one, is a part of its key. So
it is found without K and V of that rest, and goes when its node goes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..sequence import Int32
from .node import TOKEN_BYTES, Node

# What stands before a token behind the whole blocks, as bytes -> the token -> its number.
Place = dict[bytes, dict[int, float]]
SCORES_A_TOKEN = 4  # of the pool: at some 120 bytes each, about a fiftieth of a small model's KV


class ScoreStore:
    """Keeps scores at the nodes of a radix tree. The tree tells it when a node goes.

    At SCORES_A_TOKEN for each token of the pool all are forgotten, and kept from there on.
    """

    def __init__(self, roots: Mapping[str, Node], block_size: int, num_blocks: int) -> None:
        self.num_scores = 0
        self._roots = roots
        self._block_size = block_size
        self._limit = SCORES_A_TOKEN * num_blocks * block_size

    def find(
        self, namespace: str, tokens: Int32, length: int, mark: bytes = b""
    ) -> Mapping[int, float]:
        """Give what is known of the token after the first `length`, by token.

        Those kept with another `mark` are others.
        """
        place = self._place(namespace, tokens, length)
        return {} if place is None else place.get(self._rest(tokens, length) + mark, {})

    def put(
        self,
        namespace: str,
        tokens: Int32,
        length: int,
        logprobs: Mapping[int, float],
        mark: bytes = b"",
    ) -> None:
        """Keep log-probabilities after the first `length` tokens, if the tree holds those."""
        if len(logprobs) > self._limit:
            return
        if self.num_scores + len(logprobs) > self._limit:
            self.clear()
        place = self._place(namespace, tokens, length, is_new=True)
        if place is None:
            return
        known = place.setdefault(self._rest(tokens, length) + mark, {})
        self.num_scores -= len(known)
        known.update(logprobs)
        self.num_scores += len(known)

    def forget(self, node: Node, above: int = 0) -> None:
        """Forget what a node keeps beyond its first `above` tokens."""
        for at in [at for at in node.scores if at > above]:
            self.num_scores -= _count(node.scores.pop(at))

    def clear(self) -> None:
        """Forget all. O(tree)."""
        pending = list(self._roots.values())
        while pending:
            node = pending.pop()
            node.scores.clear()
            pending.extend(node.children.values())
        self.num_scores = 0

    def _place(
        self, namespace: str, tokens: Int32, length: int, is_new: bool = False
    ) -> Place | None:
        """Walk to where the whole blocks of the first `length` tokens end."""
        node, at = self._roots.get(namespace), 0
        whole = length - length % self._block_size
        data = tokens[:whole].tobytes()
        while node is not None and at < whole:
            node = node.children.get(self._key(data, at))
            if node is None:
                return None
            span = len(node.tokens)
            held = min(span, whole - at)
            if node.tokens[:held].tobytes() != data[TOKEN_BYTES * at : TOKEN_BYTES * (at + held)]:
                return None
            if at + span >= whole:
                return _at(node, whole - at, is_new)
            at += span
        return None if node is None else _at(node, 0, is_new)

    def _key(self, data: bytes, at: int) -> bytes:
        return data[TOKEN_BYTES * at : TOKEN_BYTES * (at + self._block_size)]

    def _rest(self, tokens: Int32, length: int) -> bytes:
        return tokens[length - length % self._block_size : length].tobytes()


def count_scores(node: Node) -> int:
    """Count the scores that a node keeps."""
    return sum(map(_count, node.scores.values()))


def _at(node: Node, at: int, is_new: bool) -> Place | None:
    return node.scores.setdefault(at, {}) if is_new else node.scores.get(at)


def _count(place: Place) -> int:
    return sum(map(len, place.values()))
