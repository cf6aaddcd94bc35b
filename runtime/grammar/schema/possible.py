"""Whether any value meets a goal at all: what is impossible is never offered."""

from __future__ import annotations

from ..terminal import LocalStates
from .array_ends import ArrayEnds
from .documents import Schema
from .facts import TYPES, Goal, JsonType
from .fold import Folder
from .free_names import FreeClass, FreeNames
from .keywords import goal_of
from .kinds import possible_kinds
from .object_ends import Listed, ObjectEnds
from .shapes import ArrayShape, ObjectShape, Plain, Quoted, Shape


class Possible:
    """Searches for a value, through what is required only, so that it ends on recursion."""

    def __init__(self, folder: Folder, locals_: LocalStates) -> None:
        self._free = FreeNames(folder, locals_)
        self.arrays = ArrayEnds(self, folder)
        self.objects = ObjectEnds(self, folder, self._free)
        self._folder = folder
        self._locals = locals_
        self._names: dict[ObjectShape, tuple[Listed, ...]] = {}
        self._classes: dict[ObjectShape, tuple[FreeClass, ...]] = {}
        self._known: dict[Goal, bool] = {frozenset(): True}
        self._open: dict[Goal, None] = {}
        self._refused: dict[Goal, int] = {}  # inside an open search: when it was refused
        self._num_found = 0
        self._asked: set[tuple[Goal, JsonType]] = set()  # whether there are any, right now
        self._num_cut = 0  # answers that hold only inside the open search

    @property
    def is_searching(self) -> bool:
        """True while an answer may be no only because a search for it is open."""
        return bool(self._open)

    def goal(self, goal: Goal) -> bool:
        """Say whether any value meets the goal."""
        found = self._known.get(goal)
        if found is not None:
            return found
        if goal in self._open or self._refused.get(goal) == self._num_found:
            self._num_cut += 1
            return False
        self._open[goal] = None
        try:
            found = is_surely_possible(goal) or self._search(goal)
        finally:
            del self._open[goal]
        if found:
            self._num_found += 1
            self._known[goal] = True
        elif self._open:
            self._refused[goal] = self._num_found
        else:
            self._known[goal] = False
            self._refused.clear()
        return found

    def _search(self, goal: Goal) -> bool:
        # Scalars first: they need no search of their own.
        kinds = reversed(possible_kinds(goal))
        return any(self.shape(s) for kind in kinds for s in self._folder.shapes(goal, kind))

    def is_disjoint(self, one: Schema, other: Schema, kind: JsonType) -> bool:
        """Say whether surely no value of a type matches both schemas."""
        both, num_cut = goal_of(one) | goal_of(other), self._num_cut
        if (both, kind) in self._asked:  # by the schemas themselves
            self._num_cut += 1
            return False
        self._asked.add((both, kind))
        try:
            is_found = any(map(self.shape, self._folder.shapes(both, kind)))
        finally:
            self._asked.discard((both, kind))
        return not is_found and self._num_cut == num_cut

    def shape(self, shape: Shape) -> bool:
        """Say whether any value has the shape."""
        match shape:
            case Plain(language):
                return self._locals.is_live(language, "plain")
            case Quoted(language):
                return self._locals.is_live(language, "json")
            case ArrayShape():
                return self.arrays.can_end(shape, self.arrays.start(shape))
            case ObjectShape():
                return self._object(shape)

    def num_items(self, shape: ArrayShape) -> int | None:
        """Give how many items an array can have; None: without end."""
        for index in range(shape.num_special + 1):
            if index == shape.high or not self.goal(shape.goal(index)):
                return index
        return shape.high

    def names(self, shape: ObjectShape) -> tuple[Listed, ...]:
        """Give the listed names that an object can have, with what their values must meet."""
        found = self._names.get(shape)
        if found is None:
            possible = (self._listed(shape, name) for name in shape.listed)
            found = tuple(listed for listed in possible if listed is not None)
            if not self.is_searching:
                self._names[shape] = found
        return found

    def _listed(self, shape: ObjectShape, name: str) -> Listed | None:
        is_allowed = self._folder.matches(shape.names, name)
        if not is_allowed or not self._locals.can_spell(name.encode(errors="replace")):
            return None
        goal = self._folder.property_goal(shape, name)
        if not self.goal(goal):
            return None
        return Listed(name, goal, self._free.wishes_of(shape, name), name in shape.required)

    def free_classes(self, shape: ObjectShape) -> tuple[FreeClass, ...]:
        """Give the classes of other names that an object can have."""
        found = self._classes.get(shape)
        if found is None:
            found = tuple(c for c in self._free.classes(shape) if self.goal(c.goal))
            if not self.is_searching:
                self._classes[shape] = found
        return found

    def _object(self, shape: ObjectShape) -> bool:
        # What is required first: a search through optional parts might not end.
        if not all(self._listed(shape, name) for name in shape.required):
            return False
        if shape.low <= len(shape.required) and not self._free.wanted(shape):
            return shape.high is None or len(shape.required) <= shape.high
        start = self.objects.start(shape)
        return self.objects.can_end(shape, start, len(shape.required))


def is_surely_possible(goal: Goal) -> bool:
    """Say whether the keywords alone show that some value meets the goal."""
    if len(goal) != 1:
        return not goal
    ((schema, holds),) = goal
    if not holds or isinstance(schema.value, bool) or not _NARROWING.isdisjoint(schema.keywords):
        return False
    types = schema.keywords.get("type", "object")
    return bool(types) and all(
        t in _TYPE_NAMES for t in (types if isinstance(types, list) else [types])
    )


_TYPE_NAMES = frozenset((*TYPES, "integer"))
_NARROWING = frozenset((
    "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "enum", "const",
    "required", "dependencies", "dependentRequired", "dependentSchemas", "minProperties",
    "maxProperties", "minItems", "contains", "pattern", "format", "minLength", "maxLength",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "divisibleBy",
))  # fmt: skip
