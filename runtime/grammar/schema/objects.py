"""The nodes of an object: which property can come next."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..kept import kept
from ..node import Node, Row
from ..switch import Switch
from ..words import without
from .facts import Goal
from .object_ends import Behind, Wishes
from .shapes import ObjectShape

if TYPE_CHECKING:
    from .values import Grammar


class ObjectPlace:
    """Behind some properties of an object."""

    __slots__ = ("_behind", "_grammar", "_is_first", "_shape", "twin")

    def __init__(
        self, grammar: Grammar, shape: ObjectShape, behind: Behind, is_first: bool
    ) -> None:
        self._grammar, self._shape = grammar, shape
        self._behind, self._is_first = behind, is_first
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give the next property that can come, as listed, then the others, then the end."""
        grammar, shape, ends = self._grammar, self._shape, self._grammar.possible.objects
        num_required = ends.num_required(shape, self._behind)
        rows: list[Row] = []
        options = tuple(self._options(num_required))
        if options:
            switch = grammar.pool.nodes.make(Switch, grammar.pool.locals, self, options)
            rows.append((*grammar.layout.before_key(self._is_first), switch))
        if grammar.is_any_order or not num_required:
            rows += self._free(num_required)
        if ends.is_enough(shape, self._behind, num_required):
            rows.append(grammar.layout.close("}", self._is_first))
        return tuple(rows)

    def branch(self, number: int) -> tuple[Row, ...]:
        """Give the value behind a listed name, and what can come after it."""
        grammar = self._grammar
        listed = grammar.possible.names(self._shape)[number]
        num_required = grammar.possible.objects.num_required(self._shape, self._behind)
        _, colon = grammar.layout.key(listed.name, self._is_first)
        return tuple(
            (*colon, grammar.value(goal), self._place(after))
            for goal, after in self._behind_listed(number, num_required)
        )

    def behind_free(self, goal: Goal, wanted: Wishes, name: str | None) -> Row:
        """Give what follows a name that is not listed; None: whatever name it is."""
        grammar = self._grammar
        after = self._after_free(wanted)
        if name is not None:
            after = after._replace(used=after.used | {name})
        return (*grammar.layout.colon(), grammar.value(goal), self._place(after))

    def _options(self, num_required: int) -> Iterator[tuple[bytes, int]]:
        """Give the listed names that can come next, as they are written."""
        grammar = self._grammar
        names = grammar.possible.names(self._shape)
        is_open = grammar.possible.objects.is_open(self._shape, self._behind, num_required)
        for number in self._behind.left:
            if is_open or any(True for _ in self._behind_listed(number, num_required)):
                text, _ = grammar.layout.key(names[number].name, self._is_first)
                yield text, number
            if names[number].is_required and not grammar.is_any_order:
                break

    def _behind_listed(self, number: int, num_required: int) -> Iterator[tuple[Goal, Behind]]:
        """Give what the value of a listed name can meet, with the place behind it."""
        grammar, shape, behind = self._grammar, self._shape, self._behind
        ends = grammar.possible.objects
        _, goal, wishes, is_required = grammar.possible.names(shape)[number]
        place = behind.left.index(number)
        left = behind.left[place + 1 :]
        if grammar.is_any_order:
            left = behind.left[:place] + left
        for value_goal, wanted in ends.ways(shape, goal, wishes, behind.wanted):
            after = ends.next(shape, behind, left, wanted)
            if ends.can_end(shape, after, num_required - is_required):
                yield value_goal, after

    def _free(self, num_required: int) -> Iterator[Row]:
        """Give each kind of property that is not listed, under a name that is not used yet."""
        grammar, shape, behind = self._grammar, self._shape, self._behind
        ends, nodes, locals_ = grammar.possible.objects, grammar.pool.nodes, grammar.pool.locals
        comma = () if self._is_first else grammar.layout.comma()
        for each in grammar.possible.free_classes(shape):
            unused = without(behind.used, each.names, grammar.pool.languages)
            if not locals_.is_live(unused, "json"):
                continue
            text = nodes.terminal(kept(locals_, locals_.start(unused, "json")))
            for goal, wanted in ends.ways(shape, each.goal, each.wishes, behind.wanted):
                if ends.can_end(shape, self._after_free(wanted), num_required, each):
                    after = nodes.make(FreeName, self, goal, wanted)
                    yield (*comma, grammar.layout.literal('"'), text, after)

    def _after_free(self, wanted: Wishes) -> Behind:
        left = self._behind.left if self._grammar.is_any_order else ()
        return self._grammar.possible.objects.next(self._shape, self._behind, left, wanted)

    def _place(self, behind: Behind) -> Node:
        make = self._grammar.pool.nodes.make
        return make(ObjectPlace, self._grammar, self._shape, behind, False)


class FreeName:
    """Behind a name that is not listed: its value, and an object that knows the name."""

    __slots__ = ("_goal", "_place", "_wanted", "twin")

    def __init__(self, place: ObjectPlace, goal: Goal, wanted: Wishes) -> None:
        self._place, self._goal, self._wanted = place, goal, wanted
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give what follows whatever name it is."""
        return (self._place.behind_free(self._goal, self._wanted, None),)

    def named(self, text: bytes) -> tuple[Row, ...]:
        """Give what follows the name that `text` spells, its closing quote with it."""
        name = json.loads(b'"' + text)
        return (self._place.behind_free(self._goal, self._wanted, name),)
