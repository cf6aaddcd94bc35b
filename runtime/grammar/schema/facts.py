"""What a schema says of a value of one type, taken apart into facts that hold together.

A goal is a set of schemas that a value must match, or must not. For one type of value it
comes to some cases, each a list of facts: one case must hold, with all its facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..language import Language
from .documents import Schema
from .numbers import NumberBounds

JsonType: TypeAlias = Literal["null", "boolean", "number", "string", "array", "object"]
TYPES: tuple[JsonType, ...] = ("object", "array", "string", "number", "boolean", "null")

Literal_: TypeAlias = tuple[Schema, bool]  # it matches, or it does not
Goal: TypeAlias = frozenset[Literal_]
ANY_VALUE: Goal = frozenset()


@dataclass(frozen=True, slots=True)
class SeenItems:
    """The items that were looked at: the first `num_items` (None: all), or those of a goal."""

    num_items: int | None
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value is one of these texts of JSON (or none of them)."""

    texts: tuple[str, ...]  # compact, as `json_text` writes them
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A string is in a language of decoded texts."""

    language: Language


@dataclass(frozen=True, slots=True)
class Number:
    """A number keeps to bounds."""

    bounds: NumberBounds


@dataclass(frozen=True, slots=True)
class Names:
    """A set of property names: the listed ones and those that a pattern finds, or all others."""

    listed: frozenset[str] = frozenset()
    patterns: frozenset[Language] = frozenset()
    is_rest: bool = False


@dataclass(frozen=True, slots=True)
class Every:
    """Each property with a name in `names` has a value that meets the goal."""

    names: Names
    goal: Goal


@dataclass(frozen=True, slots=True)
class Some:
    """At least one property with a name in `names` has a value that meets the goal."""

    names: Names
    goal: Goal


@dataclass(frozen=True, slots=True)
class Required:
    """The object has a property of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class NameIn:
    """Every name is in a language."""

    language: Language


@dataclass(frozen=True, slots=True)
class NameOutside:
    """Some name is not in a language."""

    language: Language


@dataclass(frozen=True, slots=True)
class Size:
    """An array has so many items, an object so many properties; `high` None: no bound."""

    low: int = 0
    high: int | None = None


@dataclass(frozen=True, slots=True)
class ItemAt:
    """The item at an index, if there is one, meets the goal."""

    index: int
    goal: Goal


@dataclass(frozen=True, slots=True)
class ItemsFrom:
    """The items from an index on meet the goal."""

    index: int
    goal: Goal


@dataclass(frozen=True, slots=True)
class Contains:
    """Of the items from an index on, `low` to `high` meet the goal."""

    goal: Goal
    low: int
    high: int | None
    index: int = 0


@dataclass(frozen=True, slots=True)
class Unique:
    """No two items are equal, says the keyword at a place."""

    place: str


Fact: TypeAlias = (
    OneOf | Text | Number | Every | Some | Required | NameIn | NameOutside | Size | ItemAt
    | ItemsFrom | Contains | Unique
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """Facts that hold together.

    `seen_names`, `seen_items`: the properties and items that some keyword has looked at, for
    `unevaluatedProperties` and `unevaluatedItems`.
    """

    facts: tuple[Fact, ...] = ()
    seen_names: tuple[Names, ...] = ()
    seen_items: tuple[SeenItems, ...] = ()

    def __and__(self, other: Case) -> Case:
        facts = (*self.facts, *(fact for fact in other.facts if fact not in self.facts))
        return Case(facts, self.seen_names + other.seen_names, self.seen_items + other.seen_items)


Cases: TypeAlias = tuple[Case, ...]
ALWAYS: Cases = (Case(),)
NEVER: Cases = ()


def fact(*facts: Fact) -> Cases:
    """Give the one case in which all of some facts hold."""
    return (Case(facts),)
