"""Sets of places in the tokens' trie that are walked as one."""

from __future__ import annotations

from collections.abc import Mapping

from .vocabulary import Vocabulary

MAX_NODES = 2_000_000  # in all frontiers; about 100 MB


class Frontier:
    """Some nodes of the trie: the ends of tokens whose beginnings were read already.

    Made by `Frontiers`: equal sets are one object.
    """

    __slots__ = ("_children", "_owner", "ids", "nodes")

    def __init__(self, owner: Frontiers, nodes: tuple[int, ...], ids: tuple[int, ...]) -> None:
        self._owner = owner
        self._children: dict[int, Frontier] | None = None
        self.nodes = nodes
        self.ids = ids  # the tokens that end here

    @property
    def children(self) -> Mapping[int, Frontier]:
        """Give where each byte leads that some token has next."""
        if self._children is None:
            self._children = self._owner.children_of(self)
        return self._children


class Frontiers:
    """Makes the frontiers over one vocabulary. Not thread-safe."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._trie = vocabulary.trie
        self._ids = vocabulary.ranked_ids
        self._made: dict[tuple[int, ...], Frontier] = {}
        self._num_nodes = 0
        self.root = self.get((0,))

    def __len__(self) -> int:
        return len(self._made)

    def get(self, nodes: tuple[int, ...]) -> Frontier:
        """Give the frontier of some nodes, in ascending order."""
        found = self._made.get(nodes)
        if found is None:
            if self._num_nodes > MAX_NODES:
                self._made, self._num_nodes = {}, 0  # those in use are kept by their users
            self._num_nodes += len(nodes)
            low, own = self._trie.low, self._trie.own
            ids = tuple(i for n in nodes for i in self._ids[low[n] : own[n]].tolist())
            found = self._made[nodes] = Frontier(self, nodes, ids)
        return found

    def behind(self, data: bytes) -> Frontier | None:
        """Give the frontier of the tokens that begin with `data`; None if there are none."""
        found = self.root
        for byte in data:
            if byte not in found.children:
                return None
            found = found.children[byte]
        return found

    def children_of(self, frontier: Frontier) -> dict[int, Frontier]:
        """Give the frontiers behind each byte."""
        trie = self._trie
        groups: dict[int, list[int]] = {}
        for node in frontier.nodes:
            first = int(trie.first_child[node])
            end = first + int(trie.num_children[node])
            for child, byte in enumerate(trie.byte[first:end].tolist(), first):
                groups.setdefault(byte, []).append(child)
        return {byte: self.get(tuple(nodes)) for byte, nodes in groups.items()}
