"""Sets of characters that are compared by identity, and their algebra, each result kept."""

from __future__ import annotations

from collections.abc import Iterable

from . import chars
from .expr import Ranges


class CharSet:
    """A set of code points. Made by `CharSets`: equal sets are one object."""

    __slots__ = ("ranges",)

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __repr__(self) -> str:
        shown = ",".join(f"{low:x}-{high:x}" for low, high in self.ranges[:8])
        return f"CharSet({shown}{',...' if len(self.ranges) > 8 else ''})"


class CharSets:
    """The sets of one pool of languages. Not thread-safe: its pool holds a lock."""

    def __init__(self) -> None:
        self._sets: dict[Ranges, CharSet] = {}
        self._intersections: dict[tuple[CharSet, CharSet], CharSet] = {}
        self._differences: dict[tuple[CharSet, CharSet], CharSet] = {}
        self.none = self.get(())
        self.all = self.get(chars.encodable(((0, chars.LAST),)))

    def __len__(self) -> int:
        return len(self._sets) + len(self._intersections) + len(self._differences)

    def get(self, ranges: Ranges) -> CharSet:
        """Give the set of `ranges`, which are sorted and apart."""
        found = self._sets.get(ranges)
        if found is None:
            found = self._sets[ranges] = CharSet(ranges)
        return found

    def union(self, sets: Iterable[CharSet]) -> CharSet:
        """Give the characters of any of the sets."""
        return self.get(chars.union(span for s in sets for span in s.ranges))

    def intersect(self, a: CharSet, b: CharSet) -> CharSet:
        """Give the characters of both."""
        if a is b or b is self.all:
            return a
        if a is self.all:
            return b
        key = (a, b) if id(a) < id(b) else (b, a)
        found = self._intersections.get(key)
        if found is None:
            found = self._intersections[key] = self.get(_intersect(a.ranges, b.ranges))
        return found

    def subtract(self, a: CharSet, b: CharSet) -> CharSet:
        """Give the characters of `a` that are not in `b`."""
        if a is b or not a or b is self.all:
            return self.none
        found = self._differences.get((a, b))
        if found is None:
            found = self._differences[a, b] = self.get(_subtract(a.ranges, b.ranges))
        return found


def _intersect(a: Ranges, b: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            found.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def _subtract(a: Ranges, b: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    j = 0
    for first, last in a:
        start = first
        while j < len(b) and b[j][1] < start:
            j += 1
        k = j
        while k < len(b) and b[k][0] <= last:
            if start < b[k][0]:
                found.append((start, b[k][0] - 1))
            start = b[k][1] + 1
            k += 1
        if start <= last:
            found.append((start, last))
    return tuple(found)
