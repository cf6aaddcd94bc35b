"""Sets of characters as small automata over the bytes of UTF-8."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from .expr import Ranges

WHOLE = 0  # the node at which the character is whole
DEAD = -1

# Code points by how many continuation bytes they take, and the first lead byte.
_FORMS = ((0x80, 0x7FF, 1, 0xC0), (0x800, 0xFFFF, 2, 0xE0), (0x10000, 0x10FFFF, 3, 0xF0))

Edges: TypeAlias = tuple[tuple[int, int, int], ...]  # (first byte, last byte, node), sorted


@dataclass(frozen=True, slots=True)
class ByteNode:
    """A place inside a character: which bytes lead where, as edges and as a table."""

    edges: Edges
    table: tuple[int, ...]  # [256] nodes, DEAD where no byte leads on
    borders: frozenset[int]  # bytes at which the table changes, 256 included


class ByteClasses:
    """The automata of all classes of one grammar; equal parts are one node.

    `spellable` are the bytes that some token holds; the others lead nowhere.
    """

    def __init__(self, spellable: Iterable[int]) -> None:
        self._is_spellable = frozenset(spellable)
        self.nodes: list[ByteNode] = [_node(())]  # WHOLE
        self._ids: dict[Edges, int] = {}
        self._roots: dict[Ranges, int] = {}
        self._bits: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}

    def root(self, ranges: Ranges) -> int:
        """Give the node that reads one character of `ranges`; DEAD if none can be spelt."""
        if ranges not in self._roots:
            self._roots[ranges] = self._build_root(ranges)
        return self._roots[ranges]

    def accepts_newline(self, node: int) -> bool:
        """Say whether a newline is a whole character at `node`."""
        return node != DEAD and self.nodes[node].table[10] == WHOLE

    def _build_root(self, ranges: Ranges) -> int:
        edges = [(low, min(high, 0x7F), WHOLE) for low, high in ranges if low <= 0x7F]
        for first, last, num_more, lead in _FORMS:
            clipped = ((max(a, first), min(b, last)) for a, b in ranges)
            inside = tuple((a, b) for a, b in clipped if a <= b)
            edges.extend(self._edges(inside, num_more, lead))
        return self._intern(edges)

    def _edges(self, ranges: Ranges, num_more: int, base: int) -> list[tuple[int, int, int]]:
        """Split numbers of 6 * num_more + 6 bits by their first byte, which starts at `base`."""
        shift = 6 * num_more
        low_bits = (1 << shift) - 1
        if not num_more:
            return [(base + a, base + b, WHOLE) for a, b in ranges]
        parts: dict[int, list[tuple[int, int]]] = {}
        edges: list[tuple[int, int, int]] = []
        for a, b in ranges:
            first, last = a >> shift, b >> shift
            if first == last:
                parts.setdefault(first, []).append((a & low_bits, b & low_bits))
                continue
            if a & low_bits:
                parts.setdefault(first, []).append((a & low_bits, low_bits))
                first += 1
            if b & low_bits != low_bits:
                parts.setdefault(last, []).append((0, b & low_bits))
                last -= 1
            if first <= last:
                edges.append((base + first, base + last, self._inner(num_more, ((0, low_bits),))))
        for byte, rest in parts.items():
            edges.append((base + byte, base + byte, self._inner(num_more, tuple(rest))))
        return edges

    def _inner(self, num_more: int, ranges: Ranges) -> int:
        """Give the node that reads `num_more` continuation bytes of numbers in `ranges`."""
        key = (num_more, ranges)
        if key not in self._bits:
            self._bits[key] = self._intern(self._edges(ranges, num_more - 1, 0x80))
        return self._bits[key]

    def _intern(self, edges: Iterable[tuple[int, int, int]]) -> int:
        kept: list[tuple[int, int, int]] = []
        for low, high, node in sorted(e for e in edges if e[2] != DEAD):
            for byte in range(low, high + 1):
                if byte not in self._is_spellable:
                    continue
                if kept and kept[-1][1] == byte - 1 and kept[-1][2] == node:
                    kept[-1] = (kept[-1][0], byte, node)
                else:
                    kept.append((byte, byte, node))
        if not kept:
            return DEAD
        key = tuple(kept)
        if key not in self._ids:
            self._ids[key] = len(self.nodes)
            self.nodes.append(_node(key))
        return self._ids[key]


def _node(edges: Edges) -> ByteNode:
    table = [DEAD] * 256
    for low, high, node in edges:
        table[low : high + 1] = [node] * (high + 1 - low)
    borders = frozenset(b for low, high, _ in edges for b in (low, high + 1))
    return ByteNode(edges, tuple(table), borders)
