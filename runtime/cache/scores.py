"""Log-probabilities kept in the radix tree: P(token | what stands before it), for the next asker.

A score stands where the whole blocks of the text before it end: at the node that holds the
last of them, or at the root. What follows these blocks, less than one, is a part of its key. So
it is found without K and V of that rest, and goes when its node goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..sequence import Int32
from .node import TOKEN_BYTES, Node, common_len

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
        self, namespace: str, tokens: Int32, lengths: Sequence[int], mark: bytes = b""
    ) -> dict[int, Mapping[int, float]]:
        """Give what is known of the token after the first `length`, for some lengths.

        Those kept with another `mark` are others. O(len(tokens)).
        """
        places = self._places(namespace, tokens, lengths)
        found: dict[int, Mapping[int, float]] = {}
        for length in lengths:
            known = places.get(self._whole(length), {}).get(self._rest(tokens, length) + mark)
            if known is not None:
                found[length] = known
        return found

    def put(
        self,
        namespace: str,
        tokens: Int32,
        rows: Mapping[int, Mapping[int, float]],
        mark: bytes = b"",
    ) -> None:
        """Keep log-probabilities after some beginnings, by their lengths; those the tree holds."""
        num_new = sum(map(len, rows.values()))
        if num_new > self._limit:
            return
        if self.num_scores + num_new > self._limit:
            self.clear()
        places = self._places(namespace, tokens, list(rows), is_new=True)
        for length, logprobs in rows.items():
            place = places.get(self._whole(length))
            if place is not None and logprobs:
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

    def _places(
        self, namespace: str, tokens: Int32, lengths: Sequence[int], is_new: bool = False
    ) -> dict[int, Place]:
        """Give the places where whole blocks end before some lengths, as far as the tree goes."""
        node, start, end = self._roots.get(namespace), 0, 0  # the node's tokens that are ours
        found: dict[int, Place] = {}
        data = tokens.tobytes()
        is_whole = True  # all of the node's tokens are ours, so that its children may go on
        for whole in sorted(set(map(self._whole, lengths))):
            while node is not None and end < whole:
                node = node.children.get(self._key(data, end)) if is_whole else None
                if node is not None:
                    shared = common_len(node.tokens, tokens[end:])
                    is_whole = shared == len(node.tokens)
                    start, end = end, end + shared
            if node is None:
                return found
            at = whole - start
            place = node.scores.setdefault(at, {}) if is_new else node.scores.get(at)
            if place is not None:
                found[whole] = place
        return found

    def _key(self, data: bytes, at: int) -> bytes:
        return data[TOKEN_BYTES * at : TOKEN_BYTES * (at + self._block_size)]

    def _whole(self, length: int) -> int:
        return length - length % self._block_size

    def _rest(self, tokens: Int32, length: int) -> bytes:
        return tokens[self._whole(length) : length].tobytes()


def count_scores(node: Node) -> int:
    """Count the scores that a node keeps."""
    return sum(map(_count, node.scores.values()))


def _count(place: Place) -> int:
    return sum(map(len, place.values()))
