"""Cases folded into shapes: all that a grammar must know of a value of one type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..language import Language
from .facts import (
    Contains,
    Every,
    Goal,
    ItemAt,
    ItemsFrom,
    Some,
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """Values whose texts of JSON are in a language; `words` if they are only so many."""

    language: Language
    words: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Quoted:
    """Strings whose decoded texts are in a language."""

    language: Language


@dataclass(frozen=True, slots=True, eq=False)
class ArrayShape:
    """Arrays. `low` and `high` bound the number of items; `high` None: without end."""

    ats: tuple[ItemAt, ...]
    froms: tuple[ItemsFrom, ...]
    contains: tuple[Contains, ...]
    low: int
    high: int | None
    unique: str | None  # the place of the keyword that wants no two items equal

    def goal(self, index: int) -> Goal:
        """Give what the item at an index must meet."""
        goals = [at.goal for at in self.ats if at.index == index]
        goals += [rest.goal for rest in self.froms if rest.index <= index]
        return frozenset().union(*goals)

    @property
    def num_special(self) -> int:
        """Give the index from which on all items are alike."""
        ends = [at.index + 1 for at in self.ats] + [rest.index for rest in self.froms]
        return max([*ends, *(c.index for c in self.contains)], default=0)


@dataclass(frozen=True, slots=True, eq=False)
class ObjectShape:
    """Objects. `listed`: the names in the order in which they come; others come after them."""

    listed: tuple[str, ...]
    everys: tuple[Every, ...]
    somes: tuple[Some, ...]
    required: frozenset[str]
    names: Language  # what every name is in
    outside: tuple[Language, ...]  # for each, some name is not in it
    low: int
    high: int | None


Shape: TypeAlias = Plain | Quoted | ArrayShape | ObjectShape
