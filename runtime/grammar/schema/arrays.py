"""The nodes of an array: which item can come next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..node import Node, Row
from .array_ends import Behind
from .shapes import ArrayShape

if TYPE_CHECKING:
    from .values import Grammar

CHECKED = "that no two items are equal is validated at the end"


class ArrayPlace:
    """Behind some items of an array."""

    __slots__ = ("_behind", "_grammar", "_shape", "twin")

    def __init__(self, grammar: Grammar, shape: ArrayShape, behind: Behind) -> None:
        self._grammar, self._shape, self._behind = grammar, shape, behind
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give the end, where there are enough items, and each kind of item that can come."""
        grammar, shape, behind = self._grammar, self._shape, self._behind
        ends, layout, make = grammar.possible.arrays, grammar.layout, grammar.pool.nodes.make
        rows: list[Row] = []
        if ends.is_enough(shape, behind):
            rows.append(layout.close("]", not behind.num_so_far))
        comma = layout.comma() if behind.num_so_far else ()
        for goal, word, after in ends.items(shape, behind):
            if word is None and shape.unique is not None:
                grammar.reader.checked[shape.unique] = CHECKED
            if ends.can_end(shape, after):
                item = grammar.value(goal) if word is None else layout.literal(word)
                rows.append((*comma, item, make(ArrayPlace, grammar, shape, after)))
        return tuple(rows)
