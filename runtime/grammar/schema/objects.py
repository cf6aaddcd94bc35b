"""The nodes of an object: which property can come next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..kept import kept
from ..node import Node, Row
from ..switch import Switch
from ..words import without
from .facts import Every, Goal
from .shapes import ObjectShape

if TYPE_CHECKING:
    from .values import Grammar


class ObjectPlace:
    """Behind some properties of an object.

    `left`: the numbers of the listed names that can still come; `count`: the properties so
    far, as far as it matters; `wanted`: what at least one property must still be; `used`:
    the names so far that are not listed, for none to come twice.
    """

    __slots__ = ("_count", "_grammar", "_is_first", "_left", "_shape", "_used", "_wanted", "twin")

    def __init__(
        self, grammar: Grammar, shape: ObjectShape, left: tuple[int, ...], count: int,
        wanted: frozenset[int], is_first: bool, used: frozenset[str],
    ) -> None:  # fmt: skip
        self._grammar, self._shape = grammar, shape
        self._left, self._count = left, count
        self._wanted, self._is_first, self._used = wanted, is_first, used
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give the next property that can come, as listed, then the others, then the end."""
        grammar, shape, possible = self._grammar, self._shape, self._grammar.possible
        names = possible.names(shape)
        num_required = sum(names[number][0] in shape.required for number in self._left)
        rows: list[Row] = []
        options = self._options(num_required)
        if options:
            switch = grammar.pool.nodes.make(Switch, grammar.pool.locals, self, options)
            rows.append((*grammar.layout.before_key(self._is_first), switch))
        if num_required and not grammar.is_any_order:
            return tuple(rows)
        if shape.high is None or shape.high - self._count > num_required:
            rows += self._free()
        if not num_required and not self._wanted and self._count >= shape.low:
            rows.append(grammar.layout.close("}"))
        return tuple(rows)

    def branch(self, number: int) -> tuple[Row, ...]:
        """Give the value behind a listed name, and what can come after it."""
        grammar = self._grammar
        name, goal = grammar.possible.names(self._shape)[number]
        place = self._left.index(number)
        left = self._left[place + 1 :]
        if grammar.is_any_order:
            left = self._left[:place] + left
        _, colon = grammar.layout.key(name, self._is_first)
        return tuple((*colon, *row) for row in self._property(name, goal, left))

    def _options(self, num_required: int) -> tuple[tuple[bytes, int], ...]:
        """Give the listed names that can come next, as they are written."""
        grammar, shape, possible = self._grammar, self._shape, self._grammar.possible
        names, is_any_order = possible.names(shape), grammar.is_any_order
        has_free = bool(possible.free_classes(shape))
        room = None if shape.high is None else shape.high - self._count
        found: list[tuple[bytes, int]] = []
        for place, number in enumerate(self._left):
            name, _ = names[number]
            is_required = name in shape.required
            num_left = len(self._left) - 1 if is_any_order else len(self._left) - place - 1
            has_room = room is None or room > num_required or (is_required and room > 0)
            if has_room and (has_free or self._count + 1 + num_left >= shape.low):
                text, _ = grammar.layout.key(name, self._is_first)
                found.append((text.encode(), number))
            if is_required and not is_any_order:
                break
        return tuple(found)

    def _property(self, name: str, goal: Goal, left: tuple[int, ...]) -> list[Row]:
        folder, possible = self._grammar.folder, self._grammar.possible
        rows: list[Row] = [(self._grammar.value(goal), self._next(left, self._wanted))]
        for number, each in self._wishes():
            if folder.has_name(each.names, name) and possible.goal(goal | each.goal):
                after = self._next(left, self._wanted - {number})
                rows.append((self._grammar.value(goal | each.goal), after))
        return rows

    def _free(self) -> list[Row]:
        """Give each kind of property that is not listed, under a name that is not used yet."""
        grammar, possible = self._grammar, self._grammar.possible
        layout, nodes, locals_ = grammar.layout, grammar.pool.nodes, grammar.pool.locals
        comma = () if self._is_first else layout.comma()
        rows: list[Row] = []
        for names, goal in possible.free_classes(self._shape):
            ways = [(names, goal, self._wanted)]
            for number, each in self._wishes():
                members = possible.free.language(each.names, self._shape)
                narrowed = grammar.pool.languages.both((names, members))
                if possible.goal(goal | each.goal):
                    ways.append((narrowed, goal | each.goal, self._wanted - {number}))
            for language, value_goal, wanted in ways:
                unused = without(self._used, language, grammar.pool.languages)
                if locals_.is_live(unused, "json"):
                    text = nodes.terminal(kept(locals_, locals_.start(unused, "json")))
                    after = nodes.make(FreeName, self, value_goal, wanted)
                    rows.append((*comma, layout.literal('"'), text, after))
        return rows

    def behind_free(self, goal: Goal, wanted: frozenset[int], name: str | None) -> Row:
        """Give what follows a name that is not listed; None: whatever name it is."""
        grammar = self._grammar
        left = self._left if grammar.is_any_order else ()
        used = self._used if name is None else self._used | {name}
        return (*grammar.layout.colon(), grammar.value(goal), self._next(left, wanted, used))

    def _wishes(self) -> list[tuple[int, Every]]:
        all_wishes = self._grammar.possible.wanted(self._shape)
        return [(number, all_wishes[number]) for number in sorted(self._wanted)]

    def _next(
        self, left: tuple[int, ...], wanted: frozenset[int], used: frozenset[str] | None = None
    ) -> Node:
        shape = self._shape
        count = min(self._count + 1, shape.low if shape.high is None else shape.high)
        names = self._used if used is None else used
        make = self._grammar.pool.nodes.make
        return make(ObjectPlace, self._grammar, shape, left, count, wanted, False, names)


class FreeName:
    """Behind a name that is not listed: its value, and an object that knows the name."""

    __slots__ = ("_goal", "_place", "_wanted", "twin")

    def __init__(self, place: ObjectPlace, goal: Goal, wanted: frozenset[int]) -> None:
        self._place, self._goal, self._wanted = place, goal, wanted
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give what follows whatever name it is."""
        return (self._place.behind_free(self._goal, self._wanted, None),)

    def named(self, text: bytes) -> tuple[Row, ...]:
        """Give what follows the name that `text` spells, its closing quote with it."""
        name = json.loads(b'"' + text)
        return (self._place.behind_free(self._goal, self._wanted, name),)
