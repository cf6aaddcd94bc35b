"""Keyword values read with their types checked."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from .documents import Object, Schema, bad_schema

MAX_COUNT = 1 << 40  # larger bounds mean the same in practice


def read_text(schema: Schema, keyword: str) -> str:
    """Give a text. Raises: RequestError (bad_grammar) with the place."""
    value = schema.keywords[keyword]
    if not isinstance(value, str):
        raise bad_schema(schema, keyword, f"is {value!r:.40}; a text is expected")
    return value


def read_count(schema: Schema, keyword: str) -> int:
    """Give a number of items, characters or properties; 3.0 counts as 3."""
    value = schema.keywords[keyword]
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value == value // 1
    ):
        raise bad_schema(schema, keyword, f"is {value!r:.40}; a whole number >= 0 is expected")
    return int(min(value, MAX_COUNT))


def read_number(schema: Schema, keyword: str) -> Decimal:
    """Give a number, exactly as it is written."""
    value = schema.keywords[keyword]
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = Decimal(str(value))
        except InvalidOperation:
            number = Decimal("NaN")
        if number.is_finite():
            return number
    raise bad_schema(schema, keyword, f"is {value!r:.40}; a number is expected")


def read_object(schema: Schema, keyword: str) -> Object:
    """Give an object of subschemas."""
    value = schema.keywords[keyword]
    if not isinstance(value, dict):
        raise bad_schema(schema, keyword, f"is {value!r:.40}; an object is expected")
    return value


def read_names(schema: Schema, keyword: str, name: str | None = None) -> list[str]:
    """Give a list of property names."""
    value = schema.keywords[keyword]
    if name is not None and isinstance(value, dict):
        value = value[name]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise bad_schema(schema, keyword, f"is {value!r:.40}; a list of names is expected")
    return list(dict.fromkeys(map(str, value)))
