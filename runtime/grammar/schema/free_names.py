"""The names that an object's properties can have beside the listed ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..language import Language
from ..terminal import LocalStates
from ..words import others, words
from .facts import Every, Goal, Names
from .fold import Folder
from .shapes import ObjectShape


@dataclass(frozen=True, slots=True, eq=False)
class FreeClass:
    """Names of which all is alike: what their values must meet, and the wishes they are for."""

    names: Language
    goal: Goal = frozenset()
    wishes: frozenset[int] = frozenset()  # numbers of those in `FreeNames.wanted`


class FreeNames:
    """Splits the unlisted names of objects into classes, apart from each other."""

    def __init__(self, folder: Folder, locals_: LocalStates) -> None:
        self._folder = folder
        self._locals = locals_
        self._classes: dict[ObjectShape, tuple[FreeClass, ...]] = {}

    def classes(self, shape: ObjectShape) -> tuple[FreeClass, ...]:
        """Give the classes, also those of which no value can meet the goal."""
        found = self._classes.get(shape)
        if found is None:
            found = self._classes[shape] = tuple(self._split(shape))
        return found

    def wanted(self, shape: ObjectShape) -> tuple[Every, ...]:
        """Give what at least one property must be, each as names and a goal."""
        somes = tuple(Every(some.names, some.goal) for some in shape.somes)
        outside = (Names(patterns=frozenset((o,)), is_rest=True) for o in shape.outside)
        return (*somes, *(Every(names, frozenset()) for names in outside))

    def wishes_of(self, shape: ObjectShape, name: str) -> frozenset[int]:
        """Give the numbers of the wishes that a property of this name is for."""
        wanted = enumerate(self.wanted(shape))
        return frozenset(n for n, each in wanted if self._folder.has_name(each.names, name))

    def _split(self, shape: ObjectShape) -> list[FreeClass]:
        languages = self._folder.languages
        free = languages.both((shape.names, others(shape.listed, languages)))
        classes = [FreeClass(free)] if self._locals.is_live(free, "json") else []
        for every in shape.everys:
            if every.names.is_rest or every.names.patterns:
                classes = list(self._parted(classes, shape, every.names, every.goal, None))
        for number, every in enumerate(self.wanted(shape)):
            classes = list(self._parted(classes, shape, every.names, frozenset(), number))
        return classes

    def _parted(
        self, classes: list[FreeClass], shape: ObjectShape, names: Names, goal: Goal,
        wish: int | None,
    ) -> Iterator[FreeClass]:  # fmt: skip
        """Part each class into the names among `names`, which gain a goal or a wish, and others."""
        languages = self._folder.languages
        members = self._language(names, shape)
        wishes = frozenset(() if wish is None else (wish,))
        for each in classes:
            inside = languages.both((each.names, members))
            if self._locals.is_live(inside, "json"):
                yield FreeClass(inside, each.goal | goal, each.wishes | wishes)
            outside = languages.both((each.names, languages.negate(members)))
            if self._locals.is_live(outside, "json"):
                yield FreeClass(outside, each.goal, each.wishes)

    def _language(self, names: Names, shape: ObjectShape) -> Language:
        """Give the language of the unlisted names among `names`."""
        languages = self._folder.languages
        if names.is_rest and not names.patterns and names.listed <= set(shape.listed):
            return languages.anything
        found = languages.union((words(names.listed, languages), *names.patterns))
        return languages.negate(found) if names.is_rest else found
