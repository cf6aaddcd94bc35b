"""The types of JSON values, and how values are written."""

from __future__ import annotations

import functools
import json
from decimal import Decimal

from .documents import Json
from .facts import TYPES, Goal, JsonType


def possible_kinds(goal: Goal) -> tuple[JsonType, ...]:
    """Give the types that the keyword `type` leaves to a goal; most schemas name one."""
    kinds: tuple[JsonType, ...] = TYPES
    for schema, holds in goal:
        types = schema.keywords.get("type", "any")
        names = types if isinstance(types, list) else [types]
        if holds and "any" not in names:
            kinds = tuple(k for k in kinds if k in names or (k == "number" and "integer" in names))
    return kinds


def kind_of(value: Json) -> JsonType:
    """Give the type of a JSON value; integers are numbers."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def json_text(value: Json) -> str:
    """Write a value as grammars write it: compact, in UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@functools.lru_cache(maxsize=4096)
def value_key(text: str) -> str:
    """Give what texts of equal values have in common: 1.0 is 1, and objects have no order."""
    return json.dumps(_normalised(json.loads(text, parse_float=Decimal)), sort_keys=True)


def _normalised(value: object) -> object:
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else str(value.normalize())
        case str():
            return f'"{value}"'  # not to be taken for a number
        case list():
            return [_normalised(item) for item in value]
        case dict():
            return {name: _normalised(item) for name, item in value.items()}
        case _:
            return value
