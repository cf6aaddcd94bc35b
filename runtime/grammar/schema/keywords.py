"""What each keyword that is about one type of value says, where it holds and where it fails.

One function a keyword: given its value and whether it must hold, the cases that come to
the same. The table at the end is the whole of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from .documents import Schema, bad_schema
from .facts import (
    ALWAYS,
    NEVER,
    Case,
    Cases,
    Contains,
    Every,
    Goal,
    ItemAt,
    ItemsFrom,
    JsonType,
    NameIn,
    NameOutside,
    Names,
    Number,
    Required,
    SeenItems,
    Size,
    Some,
    Text,
    Unique,
    fact,
)  # fmt: skip
from .formats import format_language
from .numbers import NumberBounds
from .read import read_count, read_names, read_number, read_object, read_text

if TYPE_CHECKING:
    from .reader import Reader

Keyword: TypeAlias = Callable[["Reader", Schema, str, bool], Cases]


def goal_of(schema: Schema, holds: bool = True) -> Goal:
    """Give the goal of matching one schema, or of failing it.

    One that only refers to another is that other: so equal parts are one goal.
    """
    while schema.is_reference:
        schema = schema.documents.follow(schema, "$ref")
    if schema.value is holds:
        return frozenset()
    return frozenset(((schema, holds),))


def min_length(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """minLength, maxLength: in code points."""
    count = read_count(schema, keyword)
    is_low = keyword == "minLength"
    if holds:
        return _lengths(reader, count, None) if is_low else _lengths(reader, 0, count)
    return _lengths(reader, 0, count - 1) if is_low else _lengths(reader, count + 1, None)


def _lengths(reader: Reader, low: int, high: int | None) -> Cases:
    if high is not None and high < low:
        return NEVER
    return fact(Text(reader.languages.repeat(reader.languages.any, low, high)))


def pattern(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """Pattern: a match anywhere in the text."""
    language = reader.pattern(schema, keyword, read_text(schema, keyword))
    return fact(Text(language if holds else reader.languages.negate(language)))


def format_(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """Format: asserted where it is regular; others are only validated at the end."""
    name = read_text(schema, keyword)
    expr = format_language(name, is_wide=not holds)
    if expr is None:
        reader.note_checked(schema, keyword, f"the format {name!r} is validated at the end")
        return ALWAYS
    language = reader.build(expr)
    return fact(Text(language if holds else reader.languages.negate(language)))


def bound(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """Minimum, maximum and their exclusive forms, also draft 4's booleans."""
    if isinstance(schema.keywords[keyword], bool):
        return ALWAYS  # it belongs to `minimum` or `maximum`
    value = read_number(schema, keyword)
    is_low = keyword in ("minimum", "exclusiveMinimum")
    flag = schema.keywords.get("exclusiveMinimum" if is_low else "exclusiveMaximum")
    is_open = keyword.startswith("exclusive") or flag is True
    if not holds:
        is_low, is_open = not is_low, not is_open
    if is_low:
        return fact(Number(NumberBounds(minimum=value, is_minimum_exclusive=is_open)))
    return fact(Number(NumberBounds(maximum=value, is_maximum_exclusive=is_open)))


def multiple_of(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """multipleOf: exactly, in decimals."""
    value = read_number(schema, keyword)
    if value <= 0:
        raise bad_schema(schema, keyword, "must be greater than 0")
    step = frozenset((value,))
    return fact(Number(NumberBounds(multiples=step) if holds else NumberBounds(non_multiples=step)))


def num_items(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """minItems, maxItems, minProperties, maxProperties."""
    count = read_count(schema, keyword)
    if keyword.startswith("min"):
        if holds:
            return fact(Size(low=count))
        return fact(Size(high=count - 1)) if count else NEVER
    return fact(Size(high=count)) if holds else fact(Size(low=count + 1))


def unique_items(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """uniqueItems: kept where the items are from a list; else validated at the end."""
    if schema.keywords[keyword] is not True:
        return ALWAYS if holds else NEVER
    if not holds:
        reader.note_checked(schema, keyword, "that two items are equal is validated at the end")
        return fact(Size(low=2))
    return fact(Unique(f"{schema}/{keyword}"))


def items(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """items, prefixItems, additionalItems, and items as a list in older drafts."""
    value = schema.keywords[keyword]
    if keyword == "additionalItems" and not isinstance(schema.keywords.get("items"), list):
        return ALWAYS if holds else NEVER
    if isinstance(value, list):
        return _prefix(schema, keyword, len(value), holds)
    first = 0
    prefix = schema.keywords.get("items" if keyword == "additionalItems" else "prefixItems")
    if isinstance(prefix, list):
        first = len(prefix)
    inner = schema.inside(keyword)
    if holds:
        return (Case((ItemsFrom(first, goal_of(inner)),), seen_items=(SeenItems(None),)),)
    return fact(Contains(goal_of(inner, False), 1, None, first))


def _prefix(schema: Schema, keyword: str, count: int, holds: bool) -> Cases:
    inner = [schema.inside(keyword, i) for i in range(count)]
    if holds:
        facts = tuple(ItemAt(i, goal_of(item)) for i, item in enumerate(inner))
        return (Case(facts, seen_items=(SeenItems(count),)),)
    failing = ((ItemAt(i, goal_of(item, False)), Size(low=i + 1)) for i, item in enumerate(inner))
    return tuple(Case(facts) for facts in failing)


def contains(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """Contains, with minContains and maxContains."""
    keywords = schema.keywords
    low = read_count(schema, "minContains") if "minContains" in keywords else 1
    high = read_count(schema, "maxContains") if "maxContains" in keywords else None
    goal = goal_of(schema.inside(keyword))
    if holds:
        return (Case((Contains(goal, low, high),), seen_items=(SeenItems(0, goal),)),)
    few = fact(Contains(goal, 0, low - 1)) if low else NEVER
    return few if high is None else few + fact(Contains(goal, high + 1, None))


def properties(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """Properties: each listed one, where it is there."""
    names = list(read_object(schema, keyword))
    if holds:
        facts = tuple(
            Every(Names(frozenset((name,))), goal_of(schema.inside(keyword, name)))
            for name in names
        )
        return (Case(facts, seen_names=(Names(frozenset(names)),)),)
    return tuple(_failing(name, goal_of(schema.inside(keyword, name), False)) for name in names)


def _failing(name: str, goal: Goal) -> Case:
    return Case((Every(Names(frozenset((name,))), goal), Required(name)))


def pattern_properties(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """patternProperties: each property whose name a pattern finds."""
    sources = list(read_object(schema, keyword))
    names = [
        Names(patterns=frozenset((reader.pattern(schema, keyword, source),))) for source in sources
    ]
    inner = [schema.inside(keyword, source) for source in sources]
    if holds:
        facts = tuple(Every(n, goal_of(s)) for n, s in zip(names, inner, strict=True))
        return (Case(facts, seen_names=tuple(names)),)
    failing = (Some(n, goal_of(s, False)) for n, s in zip(names, inner, strict=True))
    return tuple(Case((some,)) for some in failing)


def additional_properties(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """additionalProperties: those that neither keyword beside it names."""
    keywords = schema.keywords
    listed = read_object(schema, "properties") if "properties" in keywords else ()
    patterns = read_object(schema, "patternProperties") if "patternProperties" in keywords else ()
    found = frozenset(reader.pattern(schema, "patternProperties", source) for source in patterns)
    rest = Names(frozenset(listed), found, is_rest=True)
    inner = schema.inside(keyword)
    if holds:
        return (Case((Every(rest, goal_of(inner)),), seen_names=(Names(is_rest=True),)),)
    return fact(Some(rest, goal_of(inner, False)))


def property_names(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """propertyNames: what the names are as texts."""
    language = reader.texts(goal_of(schema.inside(keyword)))
    return fact(NameIn(language) if holds else NameOutside(language))


def required(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """Required. Draft 3's boolean form says nothing here."""
    if isinstance(schema.keywords[keyword], bool):
        return ALWAYS
    names = read_names(schema, keyword)
    if holds:
        return fact(*map(Required, names))
    return tuple(Case((_absent(schema, name),)) for name in names)


def _absent(schema: Schema, name: str) -> Every:
    return Every(Names(frozenset((name,))), goal_of(schema.documents.nothing))


def dependent(reader: Reader, schema: Schema, keyword: str, holds: bool) -> Cases:
    """dependentRequired, dependentSchemas, and both as `dependencies`."""
    cases: list[Cases] = []
    for name, value in read_object(schema, keyword).items():
        there: Cases = fact(Required(name))
        if isinstance(value, list):
            names = read_names(schema, keyword, name)
            if holds:
                then = fact(Required(name), *map(Required, names))
            else:
                then = tuple(Case((Required(name), _absent(schema, n))) for n in names)
        else:
            inner = reader.cases(schema.inside(keyword, name), holds, "object")
            then = tuple(case & other for case in there for other in inner)
        cases.append((Case((_absent(schema, name),)), *then) if holds else then)
    if holds:
        return reader.all_of(schema, keyword, cases)
    return tuple(case for each in cases for case in each)


KEYWORDS: Mapping[JsonType, Mapping[str, Keyword]] = {
    "null": {},
    "boolean": {},
    "number": {
        "minimum": bound,
        "maximum": bound,
        "exclusiveMinimum": bound,
        "exclusiveMaximum": bound,
        "multipleOf": multiple_of,
        "divisibleBy": multiple_of,
    },
    "string": {
        "minLength": min_length,
        "maxLength": min_length,
        "pattern": pattern,
        "format": format_,
    },
    "array": {
        "prefixItems": items,
        "items": items,
        "additionalItems": items,
        "contains": contains,
        "minItems": num_items,
        "maxItems": num_items,
        "uniqueItems": unique_items,
    },
    "object": {
        "properties": properties,
        "required": required,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
        "propertyNames": property_names,
        "minProperties": num_items,
        "maxProperties": num_items,
        "dependentRequired": dependent,
        "dependentSchemas": dependent,
        "dependencies": dependent,
    },
}
