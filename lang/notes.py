"""What stands behind a type in `Annotated[...]`, as JSON Schema keywords."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, TypeAlias, cast

from .errors import InvalidArgument
from .options import wrong
from .standin import stop

Keywords: TypeAlias = Mapping[str, object]

# The attributes of annotated_types and of pydantic's Field, neither of which is imported.
_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


def keywords_of(note: object, kind: object) -> Keywords | None:
    """Give the keywords that a note says of a schema of type `kind`; None if it says nothing.

    A note is a dict of keywords, or has attributes as those of annotated_types and pydantic:
    `ge`, `gt`, `le`, `lt`, `multiple_of`, `min_length`, `max_length`, `pattern`.
    """
    if isinstance(note, Mapping):
        return cast(Keywords, note)
    inner: object = getattr(note, "metadata", None)
    if isinstance(inner, list | tuple):
        return _joined(cast("Iterable[object]", inner), kind)
    low, high = _LENGTHS.get(str(kind), ("", ""))
    names = {**_BOUNDS, "min_length": low, "max_length": high}
    found = {name: _attribute(note, attribute) for attribute, name in names.items() if name}
    pattern: object = _attribute(note, "pattern")
    found["pattern"] = getattr(pattern, "pattern", pattern)
    return {name: value for name, value in found.items() if value is not None} or None


def bounded(schema: object, bounds: Mapping[str, object]) -> object:
    """Give int or float with the bounds `ge`, `gt`, `le` and `lt`, of those that are not None.

    Raises: InvalidArgument for another schema, and for bounds that no number keeps to.
    """
    given = {name: _number(name, value) for name, value in bounds.items() if value is not None}
    if not given:
        return schema
    names = ", ".join(given)
    if schema is not int and schema is not float:
        raise InvalidArgument(
            f"{names}: bounds are a number's: gen(name, int, ge=1, le=5); inside another type "
            'write Annotated[int, {"minimum": 1, "maximum": 5}]'
        )
    low = max((given[name] for name in ("ge", "gt") if name in given), default=-math.inf)
    high = min((given[name] for name in ("le", "lt") if name in given), default=math.inf)
    if low > high:
        raise InvalidArgument(f"{names}: no number is at least {low} and at most {high}")
    return Annotated[schema, {_BOUNDS[name]: value for name, value in given.items()}]


def _number(field: str, value: object) -> int | float:
    stop(value, f"the option {field} needs the value")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(cast(float, value)):
        raise wrong(field, value, "a number that is finite")
    return cast(float, value)


def _joined(notes: Iterable[object], kind: object) -> Keywords | None:
    found: dict[str, object] = {}
    for note in notes:
        keywords = keywords_of(note, kind)
        if keywords is None:
            return None
        found.update(keywords)
    return found


def _attribute(note: object, name: str) -> object:
    value: object = getattr(note, name, None)
    return None if callable(value) else value
