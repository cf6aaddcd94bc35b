"""Objects: names that are listed and free, their number and their order."""

from __future__ import annotations

import json
import random

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar.pool import Pool
from plait.runtime.grammar.spec import SchemaOptions
from plait.runtime.grammar.vocabulary import Vocabulary

from ..tokens import VOCABULARY
from .schemas import is_valid, texts_of, walked


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


STRING = {"type": "string"}

# Objects of few names and values, of which only some are right.
NARROW: list[dict[str, object]] = [
    {"propertyNames": {"enum": ["a", "b", "c"]}, "minProperties": 2},
    {"propertyNames": {"pattern": "^[abc]$"}, "minProperties": 3, "properties": {"a": STRING}},
    {"minProperties": 2, "maxProperties": 2, "required": ["c"]},
    {"maxProperties": 1, "required": ["b"], "properties": {"a": STRING}},
    {"properties": {"a": STRING, "b": STRING}, "minProperties": 1, "additionalProperties": False},
    {"not": {"additionalProperties": STRING}, "maxProperties": 2},
    {"not": {"patternProperties": {"a|b": STRING}}, "required": ["c"], "maxProperties": 2},
    {"not": {"propertyNames": {"enum": ["a", "b"]}}, "properties": {"a": {}}, "maxProperties": 1},
    {
        "not": {"anyOf": [{"patternProperties": {p: STRING}} for p in ("a", "b")]},
        "maxProperties": 1,
    },
    {
        "not": {"anyOf": [{"patternProperties": {p: STRING}} for p in ("a", "b$")]},
        "properties": {"ab": {}},
        "propertyNames": {"enum": ["ab", "c"]},
    },
    {"not": {"patternProperties": {"^a$": STRING}}, "properties": {"a": {}, "b": {}}},
    {"dependentRequired": {"a": ["b"], "b": ["c"]}, "maxProperties": 2},
    {"dependentSchemas": {"a": {"maxProperties": 1}, "b": {"required": ["a"]}}},
    {"patternProperties": {"^a": False}, "minProperties": 2, "properties": {"b": {}, "c": False}},
    {"unevaluatedProperties": False, "patternProperties": {"^[ab]": STRING}, "minProperties": 2},
]


@pytest.mark.parametrize("schema", NARROW)
def test_small_objects_are_accepted_exactly_if_they_are_valid(schema: dict[str, object]) -> None:
    texts = texts_of({"type": "object", **schema}, SchemaOptions(is_any_order=True))
    assert not texts.checked
    rng = random.Random(7)
    for _ in range(150):
        names = rng.sample(["a", "b", "c", "ab", "zb"], rng.randint(0, 4))
        value = {name: rng.choice(["", 1]) for name in names}
        assert texts.holds(value) == is_valid(schema, value), value


@pytest.mark.parametrize("is_any_order", [False, True])
@pytest.mark.parametrize("schema", NARROW)
def test_no_walk_through_a_narrow_object_meets_a_dead_end(
    schema: dict[str, object], is_any_order: bool
) -> None:
    options = SchemaOptions(is_any_order=is_any_order)
    texts = texts_of({"type": "object", **schema}, options, Pool(VOCABULARY))
    for seed in range(4):
        assert is_valid(schema, json.loads(walked(texts, seed, num_tokens=12)))


@pytest.mark.parametrize(
    "schema",
    [
        {"required": ["a"], "properties": {"a": False}},
        {"required": ["a", "b"], "maxProperties": 1},
        {"required": ["a"], "propertyNames": {"pattern": "b"}},
        {"required": ["a"], "properties": {"a": {"$ref": "#"}}},
        {"minProperties": 1, "additionalProperties": False},
        {"minProperties": 1, "additionalProperties": {"$ref": "#"}},
        {"minProperties": 3, "maxProperties": 2},
        {"minProperties": 1, "propertyNames": False},
        {"not": {"additionalProperties": STRING}, "maxProperties": 0},
        {"not": {"patternProperties": {"a": STRING}}, "propertyNames": {"pattern": "^b$"}},
        {"not": {"patternProperties": {"a": STRING}}, "patternProperties": {"a": STRING}},
        {"not": {"propertyNames": {"minLength": 1}}, "required": ["a"], "maxProperties": 1},
        {"not": {"required": []}},
    ],
)  # fmt: skip
def test_an_object_that_can_never_end_is_impossible(schema: dict[str, object]) -> None:
    assert texts_of({"type": "object", **schema}).start is None


def test_names_may_hold_any_character() -> None:
    names = ['q"x', "n\nl", "é", "🐈", "", "\\", "a/b", "\u2028", "\x00", "tab\t", "ab", "a"]
    schema = {
        "type": "object",
        "properties": {name: {"const": number} for number, name in enumerate(names)},
        "required": names,
        "additionalProperties": False,
    }
    value = {name: number for number, name in enumerate(names)}
    assert texts_of(schema).holds(value)
    assert not texts_of(schema).holds({**value, "\\": 4})


def test_a_required_name_that_no_token_spells_is_impossible() -> None:
    few = Vocabulary([bytes((b,)) for b in b'{}":,abnult[]0'], (14,), 15)
    schema = {"type": "object", "properties": {"a": {"const": 0}, "x": {"const": 0}}}
    texts = texts_of(schema, pool=Pool(few))
    assert texts.of('{"a":0}', '{"x":0}', '{"b":[]}') == '{"a":0} {"b":[]}'
    assert texts_of({**schema, "required": ["x"]}, pool=Pool(few)).start is None


def test_more_wishes_than_can_be_looked_at_are_refused_by_name() -> None:
    wishes = [{"not": {"patternProperties": {f"x{i}": STRING}}} for i in range(12)]
    with pytest.raises(RequestError, match="an object has more than 8 wishes"):
        texts_of({"type": "object", "allOf": wishes})
