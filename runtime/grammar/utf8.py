"""Sets of characters as small automata over bytes: plain UTF-8, or as a JSON string has them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from . import chars
from .expr import Ranges

WHOLE = 0  # the node at which the character is whole
DEAD = -1

# Code points by how many continuation bytes they take, and the first lead byte.
_FORMS = ((0x80, 0x7FF, 1, 0xC0), (0x800, 0xFFFF, 2, 0xE0), (0x10000, 0x10FFFF, 3, 0xF0))

# In a JSON string: what stands for itself, and the escapes of one letter.
_RAW: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, 0x10FFFF))
_ESCAPES = {'"': 0x22, "\\": 0x5C, "/": 0x2F, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9}
_HIGH, _LOW = 0xD800, 0xDC00  # first surrogates of a pair

Spelling: TypeAlias = Literal["plain", "json"]
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
        self._roots: dict[tuple[Ranges, Spelling], int] = {}
        self._numbers: dict[tuple[tuple[tuple[int, int, int], ...], int], int] = {}
        self._bits: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}

    def can_spell(self, data: bytes) -> bool:
        """Say whether each of the bytes is in some token."""
        return self._is_spellable.issuperset(data)

    def root(self, ranges: Ranges, spelling: Spelling = "plain") -> int:
        """Give the node that reads one character of `ranges`; DEAD if none can be spelt."""
        key = (ranges, spelling)
        if key not in self._roots:
            build = self._plain if spelling == "plain" else self._json
            self._roots[key] = self._intern(build(ranges))
        return self._roots[key]

    def _plain(self, ranges: Ranges) -> list[tuple[int, int, int]]:
        edges = [(low, min(high, 0x7F), WHOLE) for low, high in ranges if low <= 0x7F]
        for first, last, num_more, lead in _FORMS:
            clipped = ((max(a, first), min(b, last)) for a, b in ranges)
            inside = tuple((a, b) for a, b in clipped if a <= b)
            edges.extend(self._edges(inside, num_more, lead))
        return edges

    def _json(self, ranges: Ranges) -> list[tuple[int, int, int]]:
        """Give the raw character where JSON allows it, and each of its escapes."""
        raw = chars.difference(ranges, chars.complement(_RAW))
        short = [(ord(letter), code) for letter, code in _ESCAPES.items()]
        escapes = [
            (byte, byte, WHOLE) for byte, code in short if any(a <= code <= b for a, b in ranges)
        ]
        units = [(a, min(b, 0xFFFF), WHOLE) for a, b in ranges if a <= 0xFFFF]
        astral = tuple((max(a, 0x10000), b) for a, b in ranges if b > 0xFFFF)
        for first, last, lows in _pairs(astral):
            low_unit = self._hex(tuple((_LOW + a, _LOW + b, WHOLE) for a, b in lows), 4)
            letter = self._intern([(ord("u"), ord("u"), low_unit)])
            backslash = self._intern([(0x5C, 0x5C, letter)])
            units.append((_HIGH + first, _HIGH + last, backslash))
        escapes.append((ord("u"), ord("u"), self._hex(tuple(units), 4)))
        return [*self._plain(raw), (0x5C, 0x5C, self._intern(escapes))]

    def _hex(self, units: tuple[tuple[int, int, int], ...], num_digits: int) -> int:
        """Give the node that reads numbers of hex digits: (first, last, where they lead)."""
        if not units or not num_digits:
            return units[0][2] if units else DEAD
        key = (units, num_digits)
        if key not in self._numbers:
            self._numbers[key] = self._intern(self._digits(units, num_digits))
        return self._numbers[key]

    def _digits(
        self, units: tuple[tuple[int, int, int], ...], num_digits: int
    ) -> list[tuple[int, int, int]]:
        size = 16 ** (num_digits - 1)
        inside: dict[int, list[tuple[int, int, int]]] = {}
        for first, last, node in units:
            for digit in range(first // size, last // size + 1):
                start = digit * size
                low, high = max(first - start, 0), min(last - start, size - 1)
                inside.setdefault(digit, []).append((low, high, node))
        edges: list[tuple[int, int, int]] = []
        for digit, rest in inside.items():
            node = self._hex(tuple(rest), num_digits - 1)
            edges.extend((byte, byte, node) for byte in {*f"{digit:x}{digit:X}".encode()})
        return edges

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


def _pairs(astral: Ranges) -> list[tuple[int, int, Ranges]]:
    """Split code points past 0xFFFF by the high half of their pair: (first, last, lows)."""
    lows: dict[int, list[tuple[int, int]]] = {}
    found: list[tuple[int, int, Ranges]] = []
    for a, b in ((a - 0x10000, b - 0x10000) for a, b in astral):
        first, last = a >> 10, b >> 10
        for half in {first, last}:
            low = a & 1023 if half == first else 0
            lows.setdefault(half, []).append((low, b & 1023 if half == last else 1023))
        if last - first > 1:
            found.append((first + 1, last - 1, ((0, 1023),)))
    return [*found, *((half, half, tuple(parts)) for half, parts in lows.items())]


def _node(edges: Edges) -> ByteNode:
    table = [DEAD] * 256
    for low, high, node in edges:
        table[low : high + 1] = [node] * (high + 1 - low)
    borders = frozenset(b for low, high, _ in edges for b in (low, high + 1))
    return ByteNode(edges, tuple(table), borders)
