"""Cases of facts put together, and those left out that cannot be or say nothing new."""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Iterable
from decimal import Decimal
from typing import NamedTuple

from .documents import Schema
from .facts import (
    ALWAYS,
    NEVER,
    Case,
    Cases,
    Every,
    Fact,
    ItemsFrom,
    JsonType,
    Names,
    Number,
    OneOf,
    Required,
    SeenItems,
    Size,
    fact,
)
from .keywords import goal_of
from .numbers import NumberBounds

MAX_ABSORBED = 200  # cases that are compared with each other


def with_rest(case: Case, kind: JsonType, inner: Schema) -> Case:
    """Add that all that no keyword has looked at matches `inner`."""
    if kind == "object":
        listed = frozenset(name for names in case.seen_names for name in names.listed)
        patterns = frozenset(p for names in case.seen_names for p in names.patterns)
        if any(names.is_rest for names in case.seen_names):
            return case
        rest = Every(Names(listed, patterns, is_rest=True), goal_of(inner))
        return case & Case((rest,), seen_names=(Names(is_rest=True),))
    if any(seen.num_items is None for seen in case.seen_items):
        return case
    # An item is looked at where it is one of those that a `contains` asks for.
    found = (seen.goal for seen in case.seen_items if seen.goal is not None)
    contained = [schema for goal in found for schema, _ in goal]
    goal = goal_of(inner.documents.any_of([*contained, inner]) if contained else inner)
    first = max((seen.num_items or 0 for seen in case.seen_items), default=0)
    return case & Case((ItemsFrom(first, goal),), seen_items=(SeenItems(None),))


def type_cases(types: list[str], kind: JsonType, holds: bool) -> Cases:
    """Give the cases in which a value of a type is of one of `types`."""
    if kind in types or "any" in types:
        return ALWAYS if holds else NEVER
    if kind == "number" and "integer" in types:
        one = frozenset((Decimal(1),))
        return fact(
            Number(NumberBounds(is_integer=True) if holds else NumberBounds(non_multiples=one))
        )
    return NEVER if holds else ALWAYS


class Limits(NamedTuple):
    """What facts say that can contradict each other at first sight."""

    required: frozenset[str]
    absent: frozenset[str]  # names of properties that no value can be of
    low: int
    high: int | None
    values: frozenset[str] | None

    @property
    def is_possible(self) -> bool:
        """Say whether no two facts contradict each other."""
        has_room = self.high is None or self.low <= self.high
        return has_room and self.values != frozenset() and self.required.isdisjoint(self.absent)

    def __and__(self, other: Limits) -> Limits:
        highs = [high for high in (self.high, other.high) if high is not None]
        values = self.values if other.values is None else other.values
        if self.values is not None and other.values is not None:
            values = self.values & other.values
        return Limits(
            self.required | other.required,
            self.absent | other.absent,
            max(self.low, other.low),
            min(highs, default=None),
            values,
        )


NO_LIMITS = Limits(frozenset(), frozenset(), 0, None, None)


def _limits(fact: Fact) -> Limits:
    match fact:
        case Required(name):
            return NO_LIMITS._replace(required=frozenset((name,)))
        case Size(low, high):
            return NO_LIMITS._replace(low=low, high=high)
        case OneOf(texts, is_negated=False):
            return NO_LIMITS._replace(values=frozenset(texts))
        case Every(Names(listed, is_rest=False), goal):
            if any(isinstance(s.value, bool) and s.value is not holds for s, holds in goal):
                return NO_LIMITS._replace(absent=listed)
    return NO_LIMITS


class Known(NamedTuple):
    """A case, its facts by their numbers, and what they limit."""

    case: Case
    facts: dict[int, Fact]
    limits: Limits


class Merger:
    """Puts cases together. A case can have many facts: each is hashed once, then its number is.

    Not thread-safe.
    """

    def __init__(self) -> None:
        self._numbers: dict[Fact, int] = {}
        self._known: dict[int, Known] = {}  # by the id of the case

    def merge(self, cases: Cases, others: Cases) -> Cases:
        """Give each case of one part with each of another, but for those that cannot be.

        Leaves out each case that says all that another says, and more.
        """
        found: dict[Hashable, Case] = {}
        more = [self._look_at(other) for other in others]
        for one, own, limits in map(self._look_at, cases):
            for other, facts, other_limits in more:
                both, both_limits = own | facts, limits & other_limits
                seen_names = one.seen_names + other.seen_names
                seen_items = one.seen_items + other.seen_items
                key = frozenset(both), seen_names, seen_items
                if key not in found and both_limits.is_possible:
                    case = found[key] = Case(tuple(both.values()), seen_names, seen_items)
                    self._known[id(case)] = Known(case, both, both_limits)
        return self._absorbed(tuple(found.values()))

    def _absorbed(self, cases: Cases) -> Cases:
        if not 1 < len(cases) <= MAX_ABSORBED:
            return cases
        facts = [(frozenset(self._look_at(c).facts), c.seen_names, c.seen_items) for c in cases]
        return tuple(
            case
            for case, (own, *seen) in zip(cases, facts, strict=True)
            if not any(other < own and seen == other_seen for other, *other_seen in facts)
        )

    def _look_at(self, case: Case) -> Known:
        found = self._known.get(id(case))
        if found is None:
            numbers = self._numbers
            facts = {numbers.setdefault(fact, len(numbers)): fact for fact in case.facts}
            limits = functools.reduce(operator.and_, map(_limits, facts.values()), NO_LIMITS)
            found = self._known[id(case)] = Known(case, facts, limits)
        return found


def any_of(parts: Iterable[Cases]) -> Cases:
    """Give the cases of all parts."""
    return tuple(dict.fromkeys(case for part in parts for case in part))


def by_place(literal: tuple[Schema, bool]) -> tuple[str, str, bool]:
    """Order schemas by where they stand."""
    schema, holds = literal
    return schema.base, schema.pointer, not holds
