"""The nodes of an array: which item can come next."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ..node import Node, Row
from .facts import TYPES, Contains, Goal
from .shapes import ArrayShape, Plain

if TYPE_CHECKING:
    from .values import Grammar

MAX_UNIQUE = 256  # values of which an array can be kept free of doubles


Counts: TypeAlias = tuple[int, ...]  # for each `contains`, how many items it has found


class ArrayPlace:
    """Behind some items of an array.

    `index` counts them as far as it matters, `counts` those that each `contains` wants,
    `used` are the texts of the items where none may come twice.
    """

    __slots__ = ("_counts", "_grammar", "_index", "_shape", "_used", "twin")

    def __init__(
        self, grammar: Grammar, shape: ArrayShape, index: int, counts: tuple[int, ...],
        used: frozenset[str],
    ) -> None:  # fmt: skip
        self._grammar, self._shape = grammar, shape
        self._index, self._counts, self._used = index, counts, used
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give the end, where there are enough items, and each kind of item that can come."""
        layout, shape = self._grammar.layout, self._shape
        rows: list[Row] = []
        wanted = [c.low - n for c, n in zip(shape.contains, self._counts, strict=True)]
        missing = max([shape.low - self._index, *wanted])
        if missing <= 0:
            rows.append(layout.close("]"))
        most = self._grammar.possible.num_items(shape)
        if most is not None and (self._index >= most or missing > most - self._index):
            return tuple(rows)
        comma = layout.comma() if self._index else ()
        return (*rows, *((*comma, *row) for row in self._items(most)))

    def _items(self, most: int | None) -> list[Row]:
        rows: list[Row] = []
        for goal, counts in self._choices(self._index, self._counts):
            if not self._can_end(min(self._index + 1, self._last(most)), counts, most):
                continue
            words = self._words(goal) if self._shape.unique is not None else None
            if words is None:
                rows.append((self._grammar.value(goal), self._next(counts, most, None)))
            else:
                literal = self._grammar.layout.literal
                left = [word for word in words if word not in self._used]
                rows += [(literal(word), self._next(counts, most, word)) for word in left]
        return rows

    def _choices(self, index: int, counts: Counts) -> list[tuple[Goal, Counts]]:
        """Give what the item at an index can be: what it meets, and the counts after it."""
        shape, possible = self._shape, self._grammar.possible
        found: list[tuple[Goal, Counts]] = [(shape.goal(index), ())]
        for each, count in zip(shape.contains, counts, strict=True):
            found = [
                (goal | more, (*after, number))
                for goal, after in found
                for more, number in _ways(each, count, index)
            ]
        return [(goal, after) for goal, after in found if possible.goal(goal)]

    def _can_end(self, index: int, counts: Counts, most: int | None) -> bool:
        """Say whether the array can still get what `contains` wants of it.

        Walks through counts alone, each state once: the longest way is the array itself.
        """
        shape, seen = self._shape, {(index, counts)}
        pending = [(index, counts)]
        while pending:
            index, counts = pending.pop()
            if all(n >= c.low for c, n in zip(shape.contains, counts, strict=True)):
                return most is None or shape.low <= most
            if most is not None and index >= most:
                continue
            after = min(index + 1, self._last(most))
            new = {(after, more) for _, more in self._choices(index, counts)} - seen
            seen |= new
            # Those that have most of what is wanted first: mostly the first way is right.
            pending += sorted(new, key=lambda state: sum(state[1]))
        return False

    def _last(self, most: int | None) -> int:
        """Give the index from which on places in the array are alike."""
        return max(self._shape.num_special, self._shape.low, 1) if most is None else most

    def _next(self, counts: Counts, most: int | None, word: str | None) -> Node:
        used = self._used if word is None else self._used | {word}
        index = min(self._index + 1, self._last(most))
        make = self._grammar.pool.nodes.make
        return make(ArrayPlace, self._grammar, self._shape, index, counts, used)

    def _words(self, goal: Goal) -> tuple[str, ...] | None:
        """Give the texts of all values that meet the goal; None if they are too many."""
        folder, reader = self._grammar.folder, self._grammar.reader
        found: list[str] = []
        for shape in (s for kind in TYPES for s in folder.shapes(goal, kind)):
            words = shape.words if isinstance(shape, Plain) else None
            if words is None and self._grammar.possible.shape(shape):
                found += [""] * (MAX_UNIQUE + 1)
            found += words or ()
        if len(found) <= MAX_UNIQUE:
            return tuple(found)
        assert self._shape.unique is not None
        reader.checked[self._shape.unique] = "that no two items are equal is validated at the end"
        return None


def _ways(each: Contains, count: int, index: int) -> list[tuple[Goal, int]]:
    """Give how the next item can stand to a `contains`: what more it meets, the count after."""
    if index < each.index:
        return [(frozenset(), count)]
    failing: list[tuple[Goal, int]] = [(frozenset(), count)]
    if each.high is not None:
        failing = [(frozenset(((s, not holds),)), count) for s, holds in each.goal]
        if count < each.high:
            return [(each.goal, count + 1), *failing]
        return failing
    return [(each.goal, count + 1), *failing] if count < each.low else failing
