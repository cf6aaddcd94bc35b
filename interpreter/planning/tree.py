"""The prefixes that a cache without limits would hold, token by token."""

from __future__ import annotations

from collections.abc import Iterable


class PrefixTree:
    """A radix tree over token ids with one token an edge. It counts, and forgets nothing."""

    def __init__(self) -> None:
        self._children: list[dict[int, int]] = [{}]  # node -> token -> node; 0 is the root
        self._rounds: list[int] = [0]  # when a node was touched last
        self._round = 0
        self.num_touched = 0  # distinct tokens touched in this round

    def __len__(self) -> int:
        """Count the tokens of all distinct prefixes."""
        return len(self._children) - 1

    def start_round(self) -> None:
        """Count distinct tokens from here on anew."""
        self._round += 1
        self.num_touched = 0

    def match(self, token_ids: Iterable[int]) -> int:
        """Count the tokens of the longest known prefix; they count as touched."""
        node = length = 0
        for token in token_ids:
            child = self._children[node].get(token)
            if child is None:
                break
            self._touch(child)
            node, length = child, length + 1
        return length

    def insert(self, token_ids: Iterable[int]) -> None:
        """Make all prefixes of these tokens known; they count as touched."""
        node = 0
        for token in token_ids:
            child = self._children[node].get(token)
            if child is None:
                child = self._children[node][token] = len(self._children)
                self._children.append({})
                self._rounds.append(-1)
            self._touch(child)
            node = child

    def _touch(self, node: int) -> None:
        if self._rounds[node] != self._round:
            self._rounds[node] = self._round
            self.num_touched += 1
