"""The tokens' bytes as a trie, laid out for walking many branches at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .bits import mask_len, pack_ids
from .closings import closings
from .spec import Bitmask

Ints: TypeAlias = npt.NDArray[np.int32]
Bytes: TypeAlias = npt.NDArray[np.uint8]

SLICE_LENS = (8, 16)  # bytes: tokens up to each of them, and the rest, are walked apart


@dataclass(frozen=True, slots=True)
class Trie:
    """Nodes level by level, 0 the root; a node's children follow each other.

    Tokens are ranked by their bytes, so those under a node have neighbouring ranks:
    [low, high), of which [low, own) end at the node itself.
    """

    byte: Bytes  # [nodes] that led here
    first_child: Ints
    num_children: Ints
    low: Ints
    own: Ints
    high: Ints
    below: npt.NDArray[np.uint64]  # [nodes, 4] bits of the bytes that occur under the node


@dataclass(frozen=True, slots=True)
class Slice:
    """The tokens of some lengths."""

    trie: Trie
    ranks: npt.NDArray[np.int64]  # [tokens] among all
    longest: int  # bytes
    nodes: Ints  # those of the whole trie, by those of this one


@dataclass(frozen=True, slots=True)
class Tables:
    """All that takes long to make of a vocabulary."""

    ranked_ids: npt.NDArray[np.int64]  # token ids in the order of their bytes
    trie: Trie
    slices: tuple[Slice, ...]  # apart by length


class Vocabulary:
    """What a grammar must know of the tokens. Immutable.

    `token_bytes` has None for control tokens and ids without a token: those never come.
    Nor does a token without bytes, or one past `width`, the width of the logits. An end
    token is an end token only, whatever its bytes.

    Masks avoid texts with bytes that no token holds. They trust that a byte which occurs
    in tokens is also a token by itself, as in every byte-level vocabulary; where it is
    not, a mask can lead to a place from which no token leads on.

    `tables` are those of an equal vocabulary, if they were kept.
    """

    def __init__(
        self,
        token_bytes: Sequence[bytes | None],
        eos_ids: Collection[int],
        width: int,
        tables: Tables | None = None,
    ) -> None:
        self.width = width
        self.eos_ids = frozenset(i for i in eos_ids if 0 <= i < width)
        self._bytes = text_tokens(token_bytes, self.eos_ids, width)
        self.tables = tables or _build_tables(self._bytes)
        self.ranked_ids, self.trie = self.tables.ranked_ids, self.tables.trie
        self.slices = self.tables.slices
        self.longest = self.slices[-1].longest  # bytes
        self.spellable = frozenset(np.unique(self.trie.byte[1:]).tolist())
        num_usable, num_nodes = len(self._bytes), len(self.trie.byte)
        nodes = np.arange(num_nodes, dtype=np.int32)
        self.whole = Slice(self.trie, np.arange(num_usable), self.longest, nodes)
        self.closings = closings(self._bytes.values())

    @property
    def mask_len(self) -> int:
        """Give the number of 32-bit words in a bitmask."""
        return mask_len(self.width)

    def bytes_of(self, token_id: int) -> bytes | None:
        """Give a token's bytes; None for those that never come as text."""
        return self._bytes.get(token_id)

    def pack_slice(self, part: Slice, is_allowed: npt.NDArray[np.bool_]) -> Bitmask:
        """Turn flags by the ranks of a slice into a bitmask by id."""
        flags = np.zeros(len(self.ranked_ids), np.bool_)
        flags[part.ranks] = is_allowed
        return self.pack(flags)

    def pack(self, is_allowed: npt.NDArray[np.bool_]) -> Bitmask:
        """Turn flags by rank into a bitmask by id."""
        return pack_ids(self.ranked_ids[is_allowed], self.width)


def text_tokens(
    token_bytes: Sequence[bytes | None], eos_ids: Collection[int], width: int
) -> dict[int, bytes]:
    """Give the bytes of the tokens that may come as text, by id in ascending order."""
    known = enumerate(token_bytes[:width])
    return {i: data for i, data in known if data and i not in eos_ids}


def _build_tables(token_bytes: Mapping[int, bytes]) -> Tables:
    ranked = sorted((data, i) for i, data in token_bytes.items())
    tokens = [data for data, _ in ranked]
    trie = _build_trie(tokens)
    return Tables(np.array([i for _, i in ranked], np.int64), trie, tuple(_cut(tokens, trie)))


def _cut(tokens: list[bytes], whole: Trie) -> Iterator[Slice]:
    lengths = np.array([len(data) for data in tokens], np.int64)
    most = int(lengths.max(initial=0))
    ends = [*(n for n in SLICE_LENS if n < most), most]
    for before, longest in pairwise((0, *ends)):
        ranks = np.flatnonzero((lengths > before) & (lengths <= longest))
        trie = _build_trie([tokens[rank] for rank in ranks.tolist()])
        yield Slice(trie, ranks, longest, _places_in(whole, trie))


def _places_in(whole: Trie, part: Trie) -> Ints:
    """Give the node of `whole` for each node of `part`, whose texts are all in `whole`."""
    keys = _parents(whole) * 256 + whole.byte[1:]  # ascending, since it is level by level
    parents = _parents(part)
    found: Ints = np.zeros(len(part.byte), np.int32)
    first, end = 0, 1
    while num_more := int(part.num_children[first:end].sum()):
        nodes = np.arange(end, end + num_more)
        wanted = found[parents[nodes - 1]].astype(np.int64) * 256 + part.byte[nodes]
        found[nodes] = np.searchsorted(keys, wanted) + 1
        first, end = end, end + num_more
    return found


def _parents(trie: Trie) -> npt.NDArray[np.int64]:
    """Give the parent of each node but the root."""
    return np.repeat(np.arange(len(trie.byte)), trie.num_children)


def _build_trie(tokens: list[bytes]) -> Trie:
    """Build the trie of sorted, non-empty tokens, one level at a time."""
    lengths = np.array([len(t) for t in tokens], np.int64)
    data = np.array(bytearray(b"".join(tokens)), np.uint8)
    offsets = np.cumsum(lengths) - lengths
    node_of = np.zeros(len(tokens), np.int64)  # by rank, at the depth reached
    levels: list[tuple[Bytes, Ints, Ints, Ints, Ints]] = []
    ranks = np.arange(len(tokens))
    num_nodes, depth = 1, 0
    while len(ranks := ranks[lengths[ranks] > depth]):
        byte = data[offsets[ranks] + depth]
        parent = node_of[ranks]
        is_new = np.ones(len(ranks), np.bool_)
        is_new[1:] = (parent[1:] != parent[:-1]) | (byte[1:] != byte[:-1])
        node_of[ranks] = num_nodes - 1 + np.cumsum(is_new)
        starts = np.flatnonzero(is_new)
        ends_here = lengths[ranks] == depth + 1
        num_own = np.add.reduceat(ends_here.astype(np.int32), starts)
        low = ranks[starts].astype(np.int32)
        high = (ranks[np.append(starts[1:], len(ranks)) - 1] + 1).astype(np.int32)
        levels.append((byte[starts], parent[starts].astype(np.int32), low, low + num_own, high))
        num_nodes += len(starts)
        depth += 1
    return _join(levels, num_nodes, len(tokens))


def _join(
    levels: list[tuple[Bytes, Ints, Ints, Ints, Ints]], num_nodes: int, num_tokens: int
) -> Trie:
    root = ([0], [-1], [0], [0], [num_tokens])
    columns = list(zip(root, *levels, strict=True))
    byte = np.concatenate(columns[0]).astype(np.uint8)
    parent, low, own, high = (np.concatenate(c).astype(np.int32) for c in columns[1:])
    num_children = np.bincount(parent[1:], minlength=num_nodes).astype(np.int32)
    first_child = (np.cumsum(num_children) - num_children + 1).astype(np.int32)
    below = np.zeros((num_nodes, 4), np.uint64)
    end = num_nodes
    for level in reversed(levels):  # children before their parents
        nodes = np.arange(end - len(level[0]), end)
        codes = byte[nodes].astype(np.uint64)
        seen = below[nodes]
        seen[np.arange(len(nodes)), byte[nodes] >> 6] |= np.uint64(1) << (codes & np.uint64(63))
        starts = np.flatnonzero(np.diff(parent[nodes], prepend=-2))
        below[parent[nodes[starts]]] = np.bitwise_or.reduceat(seen, starts, axis=0)
        end -= len(nodes)
    return Trie(byte, first_child, num_children, low, own, high, below)
