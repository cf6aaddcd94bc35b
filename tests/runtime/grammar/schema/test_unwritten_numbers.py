"""Numbers that a schema has and no text writes are told from numbers that there are none of."""

from __future__ import annotations

import pytest

from plait.runtime.errors import RequestError

from .schemas import texts_of


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 10**308},
        {"type": "number", "minimum": 1e308},
        {"type": "number", "exclusiveMinimum": 1e308},
        {"type": "integer", "maximum": -(10**310)},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1e-320},
        {"type": "array", "items": {"type": "integer", "minimum": 10**308}, "minItems": 1},
    ],
)
def test_that_no_number_is_written_so_is_told_from_no_number(schema: object) -> None:
    message = "schema: no text matches it: a number .* at most 308 digits, .* from -307 to 307"
    with pytest.raises(RequestError, match=message):
        texts_of(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 10**308, "maximum": 5},
        {"type": "number", "exclusiveMinimum": 1e308, "exclusiveMaximum": 1e308},
        {"type": "integer", "minimum": 1, "exclusiveMaximum": 2, "multipleOf": 7},
        {"enum": []},
    ],
)
def test_that_there_is_no_number_is_said(schema: object) -> None:
    assert texts_of(schema).start is None
