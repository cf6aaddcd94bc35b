"""Arrays: how many items, which of them, and that none leads to where nothing can follow."""

from __future__ import annotations

import json
import random

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar.pool import Pool
from plait.runtime.grammar.spec import SchemaOptions

from ..tokens import BYTES, VOCABULARY
from .schemas import Texts, is_valid, texts_of, walked

ONE, TWO, SMALL = {"const": 1}, {"const": 2}, {"enum": [1, 2]}


@pytest.mark.parametrize(
    "schema",
    [
        {"items": ONE, "contains": TWO},
        {"prefixItems": [ONE], "items": TWO, "contains": ONE, "minContains": 2},
        {"items": SMALL, "uniqueItems": True, "minItems": 3},
        {"items": SMALL, "uniqueItems": True, "contains": ONE, "minContains": 2},
        {"prefixItems": [SMALL, SMALL], "items": TWO, "uniqueItems": True, "minItems": 3},
        {"prefixItems": [ONE, ONE], "uniqueItems": True, "minItems": 2},
        {"contains": ONE, "allOf": [{"contains": TWO}], "maxItems": 1},
        {"contains": {}, "minContains": 2, "maxContains": 1},
        {"contains": {}, "not": {"contains": {}}},
        {"contains": ONE, "maxContains": 1, "items": ONE, "minItems": 2},
        {"contains": SMALL, "maxContains": 1, "allOf": [{"contains": ONE, "minContains": 2}]},
        {"minItems": 3, "maxItems": 2},
        {"minItems": 3, "prefixItems": [{}, {}, False]},
        {"minItems": 1, "items": False},
    ],
)  # fmt: skip
def test_an_array_that_can_never_end_is_impossible(schema: dict[str, object]) -> None:
    assert texts_of({"type": "array", **schema}).start is None


# Schemas, and whether texts of each length up to five are right, at random.
NARROW: list[dict[str, object]] = [
    {"items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 2},
    {
        "prefixItems": [SMALL, {"enum": [2, 3]}, {"enum": [3, 1]}],
        "items": False,
        "uniqueItems": True,
    },
    {"prefixItems": [SMALL], "items": {"enum": [2, 3]}, "uniqueItems": True, "minItems": 3},
    {"items": {"enum": [1, 2, 3]}, "contains": ONE, "minContains": 2, "maxContains": 3},
    {"items": {"enum": [1, 2, 3]}, "contains": {"enum": [1, 2]}, "allOf": [{"contains": TWO}]},
    {"items": {"enum": [1, 2, 3]}, "contains": SMALL, "maxContains": 1, "minItems": 3},
    {"items": {"enum": [1, 2, 3]}, "uniqueItems": True, "contains": SMALL, "minContains": 2},
    {"items": {"enum": [1, 2, 3]}, "contains": ONE, "not": {"contains": TWO}, "maxItems": 3},
    {"prefixItems": [ONE, TWO, ONE], "items": False, "contains": ONE, "minContains": 2},
    {"items": {"enum": [1, 2, 3]}, "contains": ONE, "minContains": 0, "maxContains": 0},
    {"items": SMALL, "allOf": [{"contains": c, "maxContains": 2} for c in (ONE, TWO)]},
]


@pytest.mark.parametrize("schema", NARROW)
def test_small_arrays_are_accepted_exactly_if_they_are_valid(schema: dict[str, object]) -> None:
    texts = texts_of({"type": "array", **schema})
    assert not texts.checked
    rng = random.Random(3)
    for _ in range(150):
        value = [rng.choice([1, 2, 3, "a", "b"]) for _ in range(rng.randint(0, 5))]
        if rng.random() < 0.8:
            value = [v for v in value if isinstance(v, int)]
        assert texts.holds(value) == is_valid(schema, value), value


@pytest.mark.parametrize("schema", NARROW)
def test_no_walk_through_a_narrow_array_meets_a_dead_end(schema: dict[str, object]) -> None:
    pool = Pool(VOCABULARY)
    texts = texts_of({"type": "array", **schema}, pool=pool)
    for seed in range(5):
        assert is_valid(schema, json.loads(walked(texts, seed, num_tokens=12)))


def test_an_array_of_many_values_is_only_checked_to_be_unique() -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "integer"}}
    texts = texts_of(schema)
    assert texts.holds([1, 1])
    assert [place for place, _ in texts.checked] == ["#/uniqueItems"]
    with pytest.raises(RequestError, match="#/uniqueItems: that no two items are equal"):
        texts_of(schema, SchemaOptions(is_strict=True))


def long(schema: dict[str, object]) -> Texts:
    return texts_of({"type": "array", **schema}, pool=Pool(BYTES))


def test_long_arrays_cost_no_search() -> None:
    texts = long({"minItems": 1_000_000, "contains": ONE, "minContains": 500_000})
    assert texts.start is not None
    assert long({"contains": ONE, "minContains": 10**9, "maxItems": 10**9}).start is not None
    assert long({"contains": ONE, "minContains": 10**9, "maxItems": 10**9 - 1}).start is None


def test_a_search_that_is_too_long_is_refused_by_name() -> None:
    parts = [{"contains": {"const": i}, "minContains": 40, "maxContains": 50} for i in range(4)]
    with pytest.raises(RequestError, match="contains and uniqueItems"):
        long({"items": {"enum": [0, 1, 2, 3]}, "maxItems": 159, "allOf": parts})


def test_equal_values_that_are_written_differently_are_not_unique() -> None:
    pair = [{"a": 1, "b": "1"}, {"b": "1", "a": 1.0}]
    texts = texts_of({"type": "array", "uniqueItems": True, "items": {"enum": [1, 1.0, *pair]}})
    assert texts.of("[1]", "[1.0]", "[1,1.0]") == "[1] [1.0]"
    assert texts.holds([pair[1]])
    assert not texts.holds(pair)
    assert texts_of({"const": [1, 1.0], "uniqueItems": True}).start is None


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"items": {"allOf": [{"const": [[]]}, {"$ref": "#"}]}}, "[]", "[[[]]]"),
        ({"enum": [[[]], []], "items": {"$ref": "#"}}, "[[]]", "[[[]]]"),
        ({"enum": [{"a": {}}, {}], "properties": {"a": {"$ref": "#"}}}, '{"a":{}}', '{"b":{}}'),
        ({"oneOf": [{"const": [[]]}, {"items": {"$ref": "#"}, "type": "array"}]}, "[]", "[1]"),
    ],
)
def test_listed_values_are_judged_by_a_schema_that_holds_itself(
    schema: object, right: str, wrong: str
) -> None:
    assert texts_of(schema).of(right, wrong) == right
