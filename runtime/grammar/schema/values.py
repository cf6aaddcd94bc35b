"""The node of a value: the shapes that it can have."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ..node import Node, Row
from ..pool import Pool
from ..words import words
from .arrays import ArrayPlace
from .facts import Goal
from .fold import Folder
from .kinds import possible_kinds
from .layout import Layout
from .objects import ObjectPlace
from .possible import Possible
from .reader import Reader
from .shapes import ArrayShape, ObjectShape, Plain, Quoted


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """All that the nodes of one schema share."""

    pool: Pool
    reader: Reader
    folder: Folder
    possible: Possible
    layout: Layout
    is_any_order: bool  # whether listed properties may come in any order, among others

    def value(self, goal: Goal) -> Node:
        """Give the node of the values that meet the goal."""
        return self.pool.nodes.make(Value, self, goal)

    def bare_value(self, goal: Goal) -> Node:
        """Give the node of the same values; a string has no quotes and no escapes."""
        return self.pool.nodes.make(BareValue, self, goal)

    def shape_row(self, shape: Plain | Quoted | ArrayShape | ObjectShape) -> Row:
        """Give the row that one shape is."""
        nodes, locals_ = self.pool.nodes, self.pool.locals
        match shape:
            case Plain(language):
                return (nodes.terminal(locals_.start(language, "plain")),)
            case Quoted(language):
                text = nodes.terminal(locals_.start(language, "json"))
                return (self.layout.literal('"'), text)
            case ArrayShape():
                place = nodes.make(ArrayPlace, self, shape, self.possible.arrays.start(shape))
                return (*self.layout.open("["), place)
            case ObjectShape():
                start = self.possible.objects.start(shape)
                first = nodes.make(ObjectPlace, self, shape, start, True)
                return (*self.layout.open("{"), first)


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
        kinds = possible_kinds(self._goal)
        shapes = (s for kind in kinds for s in grammar.folder.shapes(self._goal, kind))
        return tuple(grammar.shape_row(s) for s in shapes if grammar.possible.shape(s))


class BareValue(Value):
    """A value that is all of a text, which says as much without quotes."""

    __slots__ = ()

    def expand(self) -> tuple[Row, ...]:
        """Give each shape that the value can have."""
        grammar = self._grammar
        return tuple(
            self._bare_row(shape) if kind == "string" else grammar.shape_row(shape)
            for kind in possible_kinds(self._goal)
            for shape in grammar.folder.shapes(self._goal, kind)
            if grammar.possible.shape(shape)
        )

    def _bare_row(self, shape: Plain | Quoted | ArrayShape | ObjectShape) -> Row:
        assert isinstance(shape, Plain | Quoted)
        pool = self._grammar.pool
        language = shape.language
        if isinstance(shape, Plain):
            assert shape.words is not None  # of strings, only those of an `enum` are Plain
            language = words([json.loads(text) for text in shape.words], pool.languages)
        return (pool.nodes.terminal(pool.locals.start(language, "plain")),)
