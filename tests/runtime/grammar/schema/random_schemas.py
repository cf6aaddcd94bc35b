"""Random schemas over few names and values, so that keywords meet; and values for them."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping
from typing import Literal, TypeAlias

from hypothesis import strategies as st

Schema: TypeAlias = "bool | dict[str, object]"
Family: TypeAlias = Literal["object", "array", "string", "number"]
Strategy: TypeAlias = st.SearchStrategy[object]

NAMES = ["a", "ab", "b", "c"]
PATTERNS = ["^a", "b$", "c", "^[ab]*$", "^[^a]$"]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
FAMILIES: tuple[Family, ...] = ("object", "array", "string", "number")
DEFINITIONS = ("x", "y")

names = st.sampled_from(NAMES)
counts = st.integers(0, 3)
numbers = st.integers(-3, 6) | st.sampled_from([0.5, 1.5, -2.5])
texts = st.sampled_from(["", "a", "ab", "b", "ccc", "é"])
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
# Listed objects have one property at most: they are written in one order only.
listed = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=1),
    max_leaves=3,
)


def values_of(family: Family) -> Strategy:
    """Give values, most of them of one type."""
    own: dict[Family, Strategy] = {
        "object": st.dictionaries(names, scalars | values, max_size=4),
        "array": st.lists(scalars | values, max_size=4),
        "string": st.text("abcé", max_size=4),
        "number": numbers,
    }
    return own[family] | own[family] | values


@functools.cache
def schemas(family: Family, depth: int) -> st.SearchStrategy[Schema]:
    """Give schemas whose keywords are mostly about one type."""
    leaves: list[Schema] = [True, False]
    leaves.extend({"type": name} for name in TYPES)
    leaf = st.sampled_from(leaves) | keyword_of(_own(family, st.sampled_from(leaves)))
    if not depth:
        return leaf
    same = schemas(family, depth - 1)
    below = st.one_of(*(schemas(other, depth - 1) for other in FAMILIES))
    own, others = _own(family, below), _combining(same)
    some = st.lists(keyword_of(own) | keyword_of(others), min_size=1, max_size=4)
    return leaf | some.map(_merged)


def roots(family: Family, depth: int = 2) -> st.SearchStrategy[dict[str, object]]:
    """Give whole schemas, with definitions."""
    definitions = st.fixed_dictionaries({name: schemas(family, 1) for name in DEFINITIONS})
    whole = schemas(family, depth).filter(lambda schema: isinstance(schema, dict))
    return st.builds(lambda schema, defs: {**schema, "$defs": defs}, whole, definitions)


def keyword_of(table: Mapping[str, Strategy]) -> st.SearchStrategy[dict[str, object]]:
    """Give one of some keywords with its value; names with a blank are more than one."""
    return st.one_of(*(value.map(functools.partial(_named, name)) for name, value in table.items()))


def _named(name: str, value: object) -> dict[str, object]:
    if " " in name:
        assert isinstance(value, dict)
        return value
    return {name: value}


def _merged(parts: list[dict[str, object]]) -> Schema:
    return {key: value for part in parts for key, value in part.items()}


def _combining(same: Strategy) -> dict[str, Strategy]:
    some = st.lists(same, min_size=1, max_size=3)
    return {
        "type": st.sampled_from(TYPES)
        | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        "enum": st.lists(listed, min_size=1, max_size=4),
        "const": listed,
        "allOf": some,
        "anyOf": some,
        "oneOf": some,
        "not": same,
        "if then": st.fixed_dictionaries({"if": same}, optional={"then": same, "else": same}),
        "$ref": st.sampled_from(["#", *(f"#/$defs/{name}" for name in DEFINITIONS)]),
    }


def _own(family: Family, below: Strategy) -> dict[str, Strategy]:
    match family:
        case "object":
            return _object(below)
        case "array":
            return _array(below)
        case "string":
            return {"minLength": counts, "maxLength": counts, "pattern": st.sampled_from(PATTERNS)}
        case "number":
            bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
            steps = st.sampled_from([1, 2, 3, 0.5, 1.5])
            return {**dict.fromkeys(bounds, numbers), "multipleOf": steps}


def _object(below: Strategy) -> dict[str, Strategy]:
    by_name = st.dictionaries(names, below, min_size=1, max_size=3)
    by_pattern = st.dictionaries(st.sampled_from(PATTERNS), below, min_size=1, max_size=2)
    some_names = st.lists(names, max_size=2, unique=True)
    own = {"properties": by_name, "additionalProperties": below}
    return {
        "properties": by_name,
        "properties additionalProperties": st.fixed_dictionaries(own),
        "required": some_names,
        "patternProperties": by_pattern,
        "additionalProperties": below,
        "propertyNames": schemas("string", 0),
        "minProperties": counts,
        "maxProperties": counts,
        "dependentRequired": st.dictionaries(names, some_names, min_size=1, max_size=2),
        "dependentSchemas": by_name,
        "unevaluatedProperties": below,
    }


def _array(below: Strategy) -> dict[str, Strategy]:
    some = st.lists(below, min_size=1, max_size=3)
    bounds = {"minContains": counts, "maxContains": counts}
    return {
        "items": below,
        "prefixItems": some,
        "prefixItems items": st.fixed_dictionaries({"prefixItems": some, "items": below}),
        "contains minContains": st.fixed_dictionaries({"contains": below}, optional=bounds),
        "minItems": counts,
        "maxItems": counts,
        "uniqueItems": st.booleans(),
        "unevaluatedItems": below,
    }


def mutated(value: object, rng: random.Random) -> object:
    """Change a value a little; its numbers come to few, all written in one way."""
    match value:
        case bool() | None:
            return rng.choice([value, value, 1, "a"])
        case int() | float():
            few = round(min(max(value, -9), 9) * 2) / 2 + rng.choice([0, 0, 1, -1, 0.5])
            return int(few) if few == int(few) else few
        case str():
            return rng.choice([value, value[:-1], value + "b", value[:1]])
        case list():
            items = [mutated(item, rng) for item in value]
            return rng.choice([items, items[1:], items[:-1], [*items, 1], [*items, *items[:1]]])
        case dict():
            pairs = [(name, mutated(item, rng)) for name, item in value.items()]
            rng.shuffle(pairs)
            return dict(rng.choice([pairs, pairs[1:], [*pairs, ("b", 1)], [*pairs, ("zz", "a")]]))
        case _:
            raise TypeError(value)
