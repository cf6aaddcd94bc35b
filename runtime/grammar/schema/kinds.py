"""The types of JSON values, and how values are written."""

from __future__ import annotations

import json

from .documents import Json
from .facts import TYPES, Goal, JsonType


def possible_kinds(goal: Goal) -> tuple[JsonType, ...]:
    """Give the types that the keyword `type` leaves to a goal; most schemas name one."""
    kinds = TYPES
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
