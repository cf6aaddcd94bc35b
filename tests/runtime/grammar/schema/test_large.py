"""Large schemas stay cheap, or are refused by name. Size is counted in parts, not in seconds."""

from __future__ import annotations

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar.pool import Pool
from plait.runtime.grammar.spec import SchemaOptions

from ..tokens import VOCABULARY
from .schemas import compact, followed, texts_of

PROPERTIES = {f"prop{i}": {"type": "integer"} for i in range(500)}
NAMES = list(PROPERTIES)
CLOSED = {"type": "object", "properties": PROPERTIES, "additionalProperties": False}
MAX_PARTS = 40_000  # of a pool: languages, nodes, states; a fifth of what it may keep


@pytest.mark.parametrize(
    "schema",
    [
        CLOSED,
        {"type": "object", "properties": PROPERTIES},
        {**CLOSED, "minProperties": 3, "maxProperties": 5},
        {**CLOSED, "required": NAMES[::50]},
        {"allOf": [{"required": [n], "properties": {n: {"const": 1}}} for n in NAMES[:50]]},
        {"type": "object", "oneOf": [{"required": [name]} for name in NAMES[:60]]},
        {"enum": [f"value {i * 7919}" for i in range(5000)]},
        {"enum": [{"id": i, "name": f"n{i}"} for i in range(2000)]},
        {"anyOf": [{"const": f"v{i}"} for i in range(500)]},
        {"oneOf": [{"const": f"v{i}"} for i in range(300)]},
        {"items": {"enum": list(range(60))}, "type": "array", "uniqueItems": True, "minItems": 3},
        {"type": "string", "minLength": 5000, "maxLength": 100_000},
        {"type": "array", "minItems": 3, "maxItems": 100_000, "items": {"type": "boolean"}},
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_any_order", [False, True])
def test_a_large_schema_has_small_masks(schema: object, is_any_order: bool) -> None:
    pool = Pool(VOCABULARY)
    texts = texts_of(schema, SchemaOptions(is_any_order=is_any_order), pool)
    assert not texts.checked
    for seed in range(3):
        assert followed(texts, seed, num_tokens=20)
    assert pool.size < MAX_PARTS


def test_each_of_many_optional_properties_can_come() -> None:
    texts = texts_of(CLOSED)
    assert texts.holds(dict.fromkeys(NAMES, 1))
    assert all(texts.holds({name: 1}) for name in NAMES[::25])
    assert not texts.holds({"prop500": 1})
    assert not texts.accepts(compact({"prop2": 1})[:-1] + ',"prop1":1}')
    free = texts_of(CLOSED, SchemaOptions(is_any_order=True))
    assert free.holds(dict.fromkeys(reversed(NAMES), 1))


def test_too_many_ways_to_meet_all_parts_are_refused_by_name() -> None:
    choices = [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(50)]
    with pytest.raises(RequestError, match="#/allOf comes to more than 400 cases") as e:
        texts_of({"allOf": choices})
    assert e.value.code == "grammar_budget"


def test_exclusive_options_that_overlap_too_much_are_checked() -> None:
    part = {f"p{i}": {"enum": [0, i + 1]} for i in range(9)}
    options = [{"properties": {**part, f"q{i}": {"const": 1}}} for i in range(9)]
    schema = {"type": "object", "oneOf": options}
    texts = texts_of(schema)
    assert [place for place, _ in texts.checked] == ["#/oneOf"]
    with pytest.raises(RequestError, match=r"#/oneOf: .* strict=True refuses"):
        texts_of(schema, SchemaOptions(is_strict=True))
