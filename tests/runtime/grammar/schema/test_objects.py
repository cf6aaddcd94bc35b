"""Objects: names that are listed and free, their number and their order."""

from __future__ import annotations

import pytest

from .schemas import texts_of


@pytest.mark.parametrize(
    ("schema", "once", "twice"),
    [
        ({"minProperties": 2}, '{"z":1,"y":1}', '{"z":1,"z":1}'),
        ({"type": "object"}, '{"z":1,"\\u007a\\u007a":1}', '{"z":1,"\\u007a":1}'),
        ({"type": "object"}, '{"é":1,"\\u00E9\\u00e9":1}', '{"é":1,"\\u00E9":1}'),
        ({"type": "object"}, '{"🙏":1,"":1}', '{"🙏":1,"\\ud83d\\ude4f":1}'),
        ({"properties": {"a": {}}}, '{"a":1,"z":1}', '{"a":1,"\\u0061":1}'),
        ({"patternProperties": {"^z": {"type": "null"}}}, '{"z":null,"y":1}', '{"y":1,"y":1}'),
        (
            {"not": {"additionalProperties": {"type": "string"}}, "type": "object"},
            '{"z":1,"y":""}',
            '{"z":1,"z":""}',
        ),
    ],
)
def test_no_name_comes_twice_however_it_is_spelt(schema: object, once: str, twice: str) -> None:
    texts = texts_of(schema)
    assert texts.of(once, twice) == once
    assert not texts.checked


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "minProperties": 3},
        {"type": "object", "propertyNames": {"pattern": "^[ab]$"}, "minProperties": 3},
        {
            "type": "object",
            "patternProperties": {"^[ab]$": True},
            "additionalProperties": False,
            "properties": {"c": True},
            "minProperties": 4,
        },
    ],
)
def test_more_properties_than_there_are_names_are_impossible(schema: object) -> None:
    assert texts_of(schema).start is None
