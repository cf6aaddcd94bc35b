"""Cases of facts put together, and those left out that cannot be or say nothing new."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

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


def absorbed(cases: Cases) -> Cases:
    """Leave out each case that says all that another says, and more."""
    if not 1 < len(cases) <= MAX_ABSORBED:
        return cases
    facts = [(frozenset(case.facts), case.seen_names, case.seen_items) for case in cases]
    return tuple(
        case
        for case, (own, *seen) in zip(cases, facts, strict=True)
        if not any(other < own and seen == other_seen for other, *other_seen in facts)
    )


def any_of(parts: Iterable[Cases]) -> Cases:
    """Give the cases of all parts."""
    return tuple(dict.fromkeys(case for part in parts for case in part))


def is_possible(facts: tuple[Fact, ...]) -> bool:
    """Say whether no two facts contradict each other at first sight."""
    required = {f.name for f in facts if isinstance(f, Required)}
    low, high = 0, None
    values: set[str] | None = None
    for each in facts:
        match each:
            case Size():
                low = max(low, each.low)
                if each.high is not None:
                    high = each.high if high is None else min(high, each.high)
            case OneOf(texts, is_negated=False):
                values = set(texts) if values is None else values & set(texts)
                if not values:
                    return False
            case Every(Names(listed, is_rest=False), goal) if required & listed:
                if any(isinstance(s.value, bool) and s.value is not holds for s, holds in goal):
                    return False
    return high is None or low <= high


def by_place(literal: tuple[Schema, bool]) -> tuple[str, str, bool]:
    """Order schemas by where they stand."""
    schema, holds = literal
    return schema.base, schema.pointer, not holds
