"""Whether a listed value meets a goal: judged by its shapes, as deep as the value is."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from .documents import Json
from .facts import Goal
from .kinds import json_text, kind_of, value_key
from .shapes import ArrayShape, ObjectShape, Plain, Quoted, Shape

if TYPE_CHECKING:
    from .fold import Folder


class Judge:
    """Judges values. A schema may hold itself: nothing is folded for it that asks again."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def accepts(self, goal: Goal, value: Json) -> bool:
        """Say whether a value meets the goal."""
        kind = kind_of(value)
        if kind not in ("array", "object"):
            return any(self.has_shape(shape, value) for shape in self._folder.shapes(goal, kind))
        return any(
            (kept is None or value_key(json_text(value)) in map(value_key, kept))
            and self.has_shape(shape, value)
            for shape, kept in self._folder.raw_shapes(goal, kind)
        )

    def has_shape(self, shape: Shape, value: Json) -> bool:
        """Say whether a value has a shape."""
        match shape:
            case Plain(language):
                return self._folder.matches(language, json_text(value))
            case Quoted(language):
                return self._folder.matches(language, cast("str", value))
            case ArrayShape():
                return self._has_items(shape, cast("list[Json]", value))
            case ObjectShape():
                return self._has_properties(shape, cast("dict[str, Json]", value))

    def _has_items(self, shape: ArrayShape, values: list[Json]) -> bool:
        if len(values) < shape.low or (shape.high is not None and len(values) > shape.high):
            return False
        keys = {value_key(json_text(value)) for value in values}
        if shape.unique is not None and len(keys) < len(values):
            return False
        for each in shape.contains:
            count = sum(self.accepts(each.goal, v) for v in values[each.index :])
            if count < each.low or (each.high is not None and count > each.high):
                return False
        return all(self.accepts(shape.goal(i), v) for i, v in enumerate(values))

    def _has_properties(self, shape: ObjectShape, values: dict[str, Json]) -> bool:
        folder = self._folder
        if len(values) < shape.low or (shape.high is not None and len(values) > shape.high):
            return False
        if not shape.required <= values.keys():
            return False
        if not all(folder.matches(shape.names, name) for name in values):
            return False
        if not all(any(not folder.matches(o, name) for name in values) for o in shape.outside):
            return False
        for some in shape.somes:
            found = (v for name, v in values.items() if folder.has_name(some.names, name))
            if not any(self.accepts(some.goal, v) for v in found):
                return False
        return all(self.accepts(folder.property_goal(shape, n), v) for n, v in values.items())
