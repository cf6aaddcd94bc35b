"""The nodes of a schema's values: what a value, an array or an object can go on with."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ..node import Node, Row
from ..pool import Pool
from .facts import TYPES, Contains, Every, Goal
from .layout import Layout
from .possible import Possible
from .reader import Reader
from .shapes import ArrayShape, Folder, ObjectShape, Plain, Quoted

MAX_UNIQUE = 256  # values of which an array can be kept free of doubles


@dataclass(frozen=True, eq=False)
class Grammar:
    """All that the nodes of one schema share."""

    pool: Pool
    reader: Reader
    folder: Folder
    possible: Possible
    layout: Layout

    def value(self, goal: Goal) -> Node:
        """Give the node of the values that meet the goal."""
        return self.pool.nodes.make(Value, self, goal)

    def shape_row(self, shape: Plain | Quoted | ArrayShape | ObjectShape) -> Row:
        """Give the row that one shape is."""
        nodes, locals_ = self.pool.nodes, self.pool.locals
        match shape:
            case Plain(language):
                return (nodes.terminal(locals_.start(language, "plain")),)
            case Quoted(language):
                text = nodes.terminal(locals_.start(language, "json"))
                return (self.layout.literal('"'), text)
            case ArrayShape(contains=contains):
                place = nodes.make(ArrayPlace, self, shape, 0, (0,) * len(contains), frozenset())
                return (*self.layout.open("["), place)
            case ObjectShape():
                wanted = frozenset(range(len(self.possible.wanted(shape))))
                place = nodes.make(ObjectPlace, self, shape, 0, 0, wanted, True)
                return (*self.layout.open("{"), place)


class Value:
    """A value that meets a goal."""

    __slots__ = ("_goal", "_grammar", "twin")

    def __init__(self, grammar: Grammar, goal: Goal) -> None:
        self._grammar = grammar
        self._goal = goal
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give each shape that the value can have."""
        grammar = self._grammar
        shapes = (s for kind in TYPES for s in grammar.folder.shapes(self._goal, kind))
        return tuple(grammar.shape_row(s) for s in shapes if grammar.possible.shape(s))


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
        shape, possible = self._shape, self._grammar.possible
        choices: list[tuple[Goal, tuple[int, ...]]] = [(shape.goal(self._index), ())]
        for each, count in zip(shape.contains, self._counts, strict=True):
            choices = [
                (goal | more, (*counts, after))
                for goal, counts in choices
                for more, after in _ways(each, count, self._index)
            ]
        rows: list[Row] = []
        for goal, counts in choices:
            if not possible.goal(goal):
                continue
            words = self._words(goal) if shape.unique is not None else None
            if words is None:
                rows.append((self._grammar.value(goal), self._next(counts, most, None)))
            else:
                literal = self._grammar.layout.literal
                left = [word for word in words if word not in self._used]
                rows += [(literal(word), self._next(counts, most, word)) for word in left]
        return rows

    def _next(self, counts: tuple[int, ...], most: int | None, word: str | None) -> Node:
        last = max(self._shape.num_special, self._shape.low, 1) if most is None else most
        used = self._used if word is None else self._used | {word}
        index = min(self._index + 1, last)
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


class ObjectPlace:
    """Behind some properties of an object.

    `index`: the next listed name that can come; `count`: the properties so far, as far as it
    matters; `wanted`: what at least one property must still be.
    """

    __slots__ = ("_count", "_grammar", "_index", "_is_first", "_shape", "_wanted", "twin")

    def __init__(
        self, grammar: Grammar, shape: ObjectShape, index: int, count: int,
        wanted: frozenset[int], is_first: bool,
    ) -> None:  # fmt: skip
        self._grammar, self._shape = grammar, shape
        self._index, self._count = index, count
        self._wanted, self._is_first = wanted, is_first
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give the next property that can come, as listed, then the others, then the end."""
        grammar, shape, possible = self._grammar, self._shape, self._grammar.possible
        names, free = possible.names(shape), possible.free_classes(shape)
        room = None if shape.high is None else shape.high - self._count
        num_required = sum(name in shape.required for name, _ in names[self._index :])
        rows: list[Row] = []
        for index, (name, goal) in enumerate(names[self._index :], self._index):
            is_required = name in shape.required
            has_room = room is None or room > num_required or (is_required and room > 0)
            left = len(names) - index - 1
            if has_room and (free or self._count + 1 + left >= shape.low):
                key = grammar.layout.key(name, self._is_first)
                rows += [(*key, *row) for row in self._property(name, goal, index)]
            if is_required:
                return tuple(rows)
        if room is None or room > 0:
            rows += self._free(free, len(names))
        if not self._wanted and self._count >= shape.low:
            rows.append(grammar.layout.close("}"))
        return tuple(rows)

    def _property(self, name: str, goal: Goal, index: int) -> list[Row]:
        folder, possible = self._grammar.folder, self._grammar.possible
        rows: list[Row] = [(self._grammar.value(goal), self._next(index + 1, self._wanted))]
        for number, each in self._wishes():
            if folder.has_name(each.names, name) and possible.goal(goal | each.goal):
                after = self._next(index + 1, self._wanted - {number})
                rows.append((self._grammar.value(goal | each.goal), after))
        return rows

    def _free(self, classes: tuple[tuple[object, Goal], ...], index: int) -> list[Row]:
        grammar, languages = self._grammar, self._grammar.pool.languages
        locals_, possible = grammar.pool.locals, grammar.possible
        rows: list[Row] = []
        for names, goal in possible.free_classes(self._shape):
            ways = [(names, goal, self._wanted)]
            for number, each in self._wishes():
                members = possible.free.language(each.names, self._shape)
                narrowed = languages.both((names, members))
                if locals_.is_live(narrowed, "json") and possible.goal(goal | each.goal):
                    ways.append((narrowed, goal | each.goal, self._wanted - {number}))
            for language, value_goal, wanted in ways:
                text = grammar.pool.nodes.terminal(locals_.start(language, "json"))
                start = (*(() if self._is_first else grammar.layout.comma()), grammar.layout.literal('"'))
                value = grammar.value(value_goal)
                rows.append((*start, text, *grammar.layout.colon(), value, self._next(index, wanted)))
        return rows

    def _wishes(self) -> list[tuple[int, Every]]:
        all_wishes = self._grammar.possible.wanted(self._shape)
        return [(number, all_wishes[number]) for number in sorted(self._wanted)]

    def _next(self, index: int, wanted: frozenset[int]) -> Node:
        shape = self._shape
        count = min(self._count + 1, shape.low if shape.high is None else shape.high)
        make = self._grammar.pool.nodes.make
        return make(ObjectPlace, self._grammar, shape, index, count, wanted, False)


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
