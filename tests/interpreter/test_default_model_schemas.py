"""Whatever a real model draws at temperature 1, what it finishes matches its schema."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from plait import State, Truncated, function, gen, local, user
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home

pytestmark = pytest.mark.slow

NAME = {"type": "string", "minLength": 1, "maxLength": 20}
PERSON = {
    "type": "object",
    "properties": {"name": NAME, "age": {"type": "integer", "minimum": 0, "maximum": 130}},
    "required": ["name"],
    "additionalProperties": False,
}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "v": {"type": "integer", "minimum": 0, "maximum": 9},
                "k": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2},
            },
            "required": ["v"],
            "additionalProperties": False,
        }
    },
}
SCHEMAS: list[dict[str, Any]] = [
    PERSON,
    TREE,
    {"type": "array", "items": PERSON, "minItems": 1, "maxItems": 3},
    {"enum": [1, "one", None, True, {"k": [1, 2]}]},
    {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "email", "maxLength": 30},
    {"type": "number", "minimum": -1.5, "exclusiveMaximum": 2.25},
    {"type": "integer", "multipleOf": 7, "minimum": -100, "maximum": 100},
    {"type": ["integer", "null"]},
    {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
    {"type": "array", "prefixItems": [{"type": "boolean"}, NAME], "items": False, "minItems": 2},
    {"type": "array", "contains": {"const": 3}, "items": {"type": "integer"}, "maxItems": 4},
    {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 3},
    {"type": "object", "patternProperties": {"^x-[a-z]{1,5}$": NAME}, "additionalProperties": False,
     "minProperties": 1, "maxProperties": 2},
    {"oneOf": [{"type": "integer", "minimum": 5}, {"type": "integer", "maximum": 8}, NAME]},
    {"anyOf": [PERSON, {"type": "boolean"}], "not": {"const": True}},
    {"allOf": [PERSON, {"required": ["age"]}], "unevaluatedProperties": False},
    {"type": "object",
     "properties": {"kind": {"enum": ["circle", "square"]}, "r": {"type": "number", "minimum": 0},
                    "side": {"type": "integer", "minimum": 1, "maximum": 99}},
     "required": ["kind"], "additionalProperties": False,
     "if": {"properties": {"kind": {"const": "circle"}}},
     "then": {"required": ["r"]}, "else": {"required": ["side"]}},
    {"type": "object", "properties": {"card": NAME, "zip": NAME}, "additionalProperties": False,
     "dependentRequired": {"card": ["zip"]}},
]  # fmt: skip
TEXTS = [
    "Maria Lopez, 34, ordered KX-4821 on 2024-03-05 and wrote from maria@example.org.",
    "Ten circles and two squares, one of side 12, were drawn for 49.90.",
]
NUM_SEEDS = 5


@function
def extract(s: State, text: str, schema: dict[str, Any]) -> None:
    s += user(f"{text}\nGive the facts as JSON.")
    s += gen("value", schema, max_tokens=96, temperature=1)


def test_two_hundred_finished_values_match_their_schemas() -> None:
    stored = Store(default_home()).find(DEFAULT_MODEL)
    if stored is None:
        pytest.skip(f"needs `plait pull {DEFAULT_MODEL}`")
    cases = [(t, schema) for schema in SCHEMAS for t in TEXTS for _ in range(NUM_SEEDS)]
    backend = local(str(stored.path), kv_cache_tokens=16384, max_context=512)
    try:
        rows = [{"text": text, "schema": schema} for text, schema in cases]
        results = extract.run_batch(rows, backend=backend, seed=11)
    finally:
        backend.close()
    finished = 0
    for result, (_, schema) in zip(results, cases, strict=True):
        if result.error is None:
            jsonschema.Draft202012Validator(schema).validate(result["value"])
            finished += 1
        else:  # a text that has no end yet; anything else is a fault
            assert isinstance(result.error, Truncated), result.error
    assert finished >= 0.8 * len(cases)
