"""Blanks: none by default, as many as are allowed where JSON takes them, and nowhere else."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait.runtime.grammar.pool import Pool
from plait.runtime.grammar.spec import SchemaOptions

from ..tokens import BYTES, VOCABULARY
from .random_schemas import values
from .schemas import is_valid, texts_of, walked

SLOW_TO_MAKE = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)

POOL = Pool(BYTES)
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"enum": ["a b", 1]}, "maxItems": 2},
    },
    "required": ["name"],
}
VALUE = {"name": "x", "tags": ["a b", 1], "more": {"deep": [[], {}, [{}]]}}


@pytest.mark.parametrize("indent", [None, 0, 1, 4, "\t"])
def test_what_json_writes_with_blanks_is_accepted_if_enough_are_allowed(
    indent: int | str | None,
) -> None:
    text = json.dumps(VALUE, indent=indent)
    assert texts_of(PERSON, SchemaOptions(max_blanks=20)).accepts(text)
    assert not texts_of(PERSON).accepts(text)
    assert texts_of(PERSON).holds(VALUE)


@settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ],
)
@given(values, st.integers(0, 3))
def test_any_value_may_be_written_with_blanks(value: object, indent: int) -> None:
    texts = texts_of(True, SchemaOptions(max_blanks=12), POOL)
    assert texts.accepts(json.dumps(value, indent=indent, ensure_ascii=False))
    assert texts.holds(value)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ('{"name":"x"}', 0),
        ('{"name": "x"}', 1),
        ('{\n"name"\t:\r"x" }', 1),
        ('{"name" :  "x"}', 2),
        ('{"name":"x","tags":[  ]}', 2),
        ('{"name":"x", "tags":[1 , "a b"]}', 1),
        ('{"name":"x","tags":[1,   1]}', 3),
    ],
)
def test_so_many_blanks_are_needed(text: str, most: int) -> None:
    for max_blanks in range(5):
        texts = texts_of(PERSON, SchemaOptions(max_blanks=max_blanks))
        assert texts.accepts(text) == (max_blanks >= most)


@pytest.mark.parametrize(
    "text",
    [
        ' {"name":"x"}',
        '{"name":"x"} ',
        '{"na me":"x"}',
        '{"name":"x",\u00a0"tags":[]}',
        '{"name":"x","tags":["a  b"]}',
        '{"name":"x","tags":[1 1]}',
        '{"name":"x", }',
        '{"name":"x","tags":[1,]}',
        '{"name"="x"}',
    ],
)
def test_blanks_stand_nowhere_else(text: str) -> None:
    assert not texts_of(PERSON, SchemaOptions(max_blanks=3)).accepts(text)


@pytest.mark.slow
@pytest.mark.parametrize("max_blanks", [0, 1, 7])
@pytest.mark.parametrize("is_any_order", [False, True])
def test_a_walk_with_blanks_ends_in_a_valid_text(max_blanks: int, is_any_order: bool) -> None:
    options = SchemaOptions(max_blanks=max_blanks, is_any_order=is_any_order)
    texts = texts_of(PERSON, options, Pool(VOCABULARY))
    for seed in range(3):
        assert is_valid(PERSON, json.loads(walked(texts, seed, num_tokens=25)))


def test_listed_values_are_written_without_blanks() -> None:
    texts = texts_of({"enum": [[1, 2], {"a": 1}]}, SchemaOptions(max_blanks=3))
    assert texts.of("[1,2]", "[1, 2]", '{"a":1}', '{"a": 1}') == '[1,2] {"a":1}'


def test_properties_come_in_any_order_only_if_asked_for() -> None:
    schema = {"type": "object", "properties": {name: {"type": "null"} for name in "abc"}}
    ordered, free = texts_of(schema), texts_of(schema, SchemaOptions(is_any_order=True))
    rng = random.Random(1)
    for _ in range(30):
        names = rng.sample("abcxy", rng.randint(0, 5))
        value = dict.fromkeys(names)
        assert free.holds(value)
        listed = [name for name in names if name in "abc"]
        assert ordered.holds(value) == (names[: len(listed)] == sorted(listed))
    assert not free.accepts('{"a":null,"x":1,"a":null}')
