"""Whether any value meets a goal at all: what is impossible is never offered."""

from __future__ import annotations

from ..language import Language
from ..terminal import LocalStates
from ..words import others, words
from .documents import Schema
from .facts import TYPES, Contains, Every, Goal, JsonType, Names
from .keywords import goal_of
from .reader import possible_kinds
from .shapes import ArrayShape, Folder, ObjectShape, Plain, Quoted, Shape


class FreeNames:
    """The names of an object's properties that are not listed: classes with their goals."""

    def __init__(self, folder: Folder, locals_: LocalStates) -> None:
        self._folder = folder
        self._locals = locals_
        self._classes: dict[ObjectShape, tuple[tuple[Language, Goal], ...]] = {}

    def classes(self, shape: ObjectShape) -> tuple[tuple[Language, Goal], ...]:
        """Give languages of names, apart from each other, and what their values must meet."""
        found = self._classes.get(shape)
        if found is None:
            found = self._classes[shape] = tuple(self._split(shape))
        return found

    def language(self, names: Names, shape: ObjectShape) -> Language:
        """Give the language of the unlisted names among `names`."""
        languages = self._folder.languages
        if names.is_rest and not names.patterns and names.listed <= set(shape.listed):
            return languages.anything
        found = languages.union((words(names.listed, languages), *names.patterns))
        return languages.negate(found) if names.is_rest else found

    def _split(self, shape: ObjectShape) -> list[tuple[Language, Goal]]:
        languages = self._folder.languages
        free = languages.both((shape.names, others(shape.listed, languages)))
        classes: list[tuple[Language, Goal]] = [(free, frozenset())]
        for every in shape.everys:
            if not every.names.is_rest and not every.names.patterns:
                continue
            members = self.language(every.names, shape)
            classes = [
                (narrowed, narrowed_goal)
                for names, goal in classes
                for part, narrowed_goal in (
                    (members, goal | every.goal),
                    (languages.negate(members), goal),
                )
                if self._locals.is_live(narrowed := languages.both((names, part)), "json")
            ]
        return [c for c in classes if self._locals.is_live(c[0], "json")]


class Possible:
    """Searches for a value, through what is required only, so that it ends on recursion."""

    def __init__(self, folder: Folder, locals_: LocalStates) -> None:
        self.free = FreeNames(folder, locals_)
        self._folder = folder
        self._locals = locals_
        self._names: dict[ObjectShape, tuple[tuple[str, Goal], ...]] = {}
        self._free: dict[ObjectShape, tuple[tuple[Language, Goal], ...]] = {}
        self._known: dict[Goal, bool] = {frozenset(): True}
        self._open: dict[Goal, None] = {}
        self._refused: dict[Goal, int] = {}  # inside an open search: when it was refused
        self._num_found = 0

    def goal(self, goal: Goal) -> bool:
        """Say whether any value meets the goal."""
        found = self._known.get(goal)
        if found is not None:
            return found
        if goal in self._open or self._refused.get(goal) == self._num_found:
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
        """Say whether no value of a type matches both schemas."""
        both = goal_of(one) | goal_of(other)
        return not any(map(self.shape, self._folder.shapes(both, kind)))

    def shape(self, shape: Shape) -> bool:
        """Say whether any value has the shape."""
        match shape:
            case Plain(language):
                return self._locals.is_live(language, "plain")
            case Quoted(language):
                return self._locals.is_live(language, "json")
            case ArrayShape():
                return self._array(shape)
            case ObjectShape():
                return self._object(shape)

    def num_items(self, shape: ArrayShape) -> int | None:
        """Give how many items an array can have; None: without end."""
        for index in range(shape.num_special + 1):
            if index == shape.high or not self.goal(shape.goal(index)):
                return index
        return shape.high

    def _array(self, shape: ArrayShape) -> bool:
        most = self.num_items(shape)
        if most is not None and shape.low > most:
            return False
        return all(self._contains(shape, each, most) for each in shape.contains)

    def _contains(self, shape: ArrayShape, each: Contains, most: int | None) -> bool:
        if each.high is not None and each.low > each.high:
            return False
        places = range(each.index, shape.num_special + 1 if most is None else most)
        if most is not None and len(places) < each.low:
            return False
        ends = places[: shape.num_special + 1 - each.index]
        return not each.low or any(self.goal(each.goal | shape.goal(i)) for i in ends)

    def names(self, shape: ObjectShape) -> tuple[tuple[str, Goal], ...]:
        """Give the listed names that an object can have, with what their values must meet."""
        if shape not in self._names:
            possible = ((name, self._name_goal(shape, name)) for name in shape.listed)
            self._names[shape] = tuple((name, goal) for name, goal in possible if goal is not None)
        return self._names[shape]

    def _name_goal(self, shape: ObjectShape, name: str) -> Goal | None:
        is_allowed = self._folder.matches(shape.names, name)
        if not is_allowed or not self._locals.can_spell(name.encode(errors="replace")):
            return None
        goal = self._folder.property_goal(shape, name)
        return goal if self.goal(goal) else None

    def free_classes(self, shape: ObjectShape) -> tuple[tuple[Language, Goal], ...]:
        """Give the classes of other names that an object can have."""
        if shape not in self._free:
            self._free[shape] = tuple(c for c in self.free.classes(shape) if self.goal(c[1]))
        return self._free[shape]

    def _object(self, shape: ObjectShape) -> bool:
        if shape.high is not None and max(len(shape.required), shape.low) > shape.high:
            return False
        # What is required first: a search through optional parts might not end.
        for name in shape.required:
            if not self._folder.matches(shape.names, name):
                return False
            if not self.goal(self._folder.property_goal(shape, name)):
                return False
        if len(shape.required) < shape.low and not self.free_classes(shape):
            is_enough = len(self.names(shape)) >= shape.low
            return is_enough and all(self._some(shape, each) for each in self.wanted(shape))
        return all(self._some(shape, each) for each in self.wanted(shape))

    def wanted(self, shape: ObjectShape) -> tuple[Every, ...]:
        """Give what at least one property must be, each as names and a goal."""
        somes = tuple(Every(some.names, some.goal) for some in shape.somes)
        outside = (Names(patterns=frozenset((o,)), is_rest=True) for o in shape.outside)
        return (*somes, *(Every(names, frozenset()) for names in outside))

    def _some(self, shape: ObjectShape, each: Every) -> bool:
        languages = self._folder.languages
        for name in shape.listed:
            goal = self._folder.property_goal(shape, name) | each.goal
            if self._folder.has_name(each.names, name) and self.goal(goal):
                return True
        members = self.free.language(each.names, shape)
        return any(
            self._locals.is_live(languages.both((names, members)), "json")
            and self.goal(goal | each.goal)
            for names, goal in self.free.classes(shape)
        )


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
