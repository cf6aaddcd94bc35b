"""References: where they lead, and what is said where they lead nowhere."""

from __future__ import annotations

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar.spec import SchemaOptions

from .schemas import is_valid, texts_of

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
NULL = {"type": "null"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/x", "$defs": {"x": NULL}},
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": NULL}},
        {"$ref": "#/$defs/a~0b", "$defs": {"a~b": NULL}},
        {"$ref": "#/$defs/a~01b", "$defs": {"a~1b": NULL}},
        {"$ref": "#/$defs/a%25b", "$defs": {"a%b": NULL}},
        {"$ref": "#/$defs/a%20b", "$defs": {"a b": NULL}},
        {"$ref": "#/$defs/%22a%22", "$defs": {'"a"': NULL}},
        {"$ref": "#/$defs/%C3%A9", "$defs": {"é": NULL}},
        {"$ref": "#/$defs/x/anyOf/1", "$defs": {"x": {"anyOf": [True, NULL]}}},
        {"$ref": "#/$defs//$defs/", "$defs": {"": {"$defs": {"": NULL}}}},
        {"$ref": "#here", "$defs": {"x": {"$anchor": "here", **NULL}}},
        {"$ref": "#here", "$defs": {"x": {"$dynamicAnchor": "here", **NULL}}},
        {"$dynamicRef": "#here", "$defs": {"x": {"$dynamicAnchor": "here", **NULL}}},
        {"$id": "http://a.org/b/root", "$ref": "leaf", "$defs": {"x": {"$id": "leaf", **NULL}}},
        {"$id": "http://a.org/b", "$ref": "/c#y", "$defs": {
            "x": {"$id": "/c", "$defs": {"z": {"$anchor": "y", **NULL}}}}},
        {"$schema": DRAFT_7, "$ref": "#/definitions/x", "definitions": {"x": NULL}},
        {"$schema": DRAFT_7, "$ref": "#here", "definitions": {"x": {"$id": "#here", **NULL}}},
        {"$schema": DRAFT_4, "$ref": "#here", "definitions": {"x": {"id": "#here", **NULL}}},
        {"$schema": DRAFT_7, "$ref": "#/definitions/x", "type": "string",
         "definitions": {"x": NULL}},
        {"$ref": "http://a.org/x", "$defs": {"x": {"$id": "http://a.org/x", **NULL}}},
    ],
)  # fmt: skip
def test_a_reference_leads_to_null(schema: object) -> None:
    assert texts_of(schema).of("null", '"s"', "1") == "null"


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("#/$defs/y", "there is no such place"),
        ("#y", "there is no such place"),
        ("#/$defs/x/enum/7", "there is no such place"),
        ("#/$defs/x/enum/x", "there is no such place"),
        ("other.json", r"nothing is fetched, so put it under \$defs"),
        ("https://json-schema.org/draft/2020-12/nothing", "nothing is fetched"),
    ],
)
def test_a_reference_that_leads_nowhere_is_named(reference: str, reason: str) -> None:
    schema = {"properties": {"a": {"$ref": reference}}, "$defs": {"x": {"enum": [1]}}}
    message = rf"schema: #/properties/a/\$ref: cannot resolve '.*': {reason}"
    with pytest.raises(RequestError, match=message):
        texts_of(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"not": {"$ref": "#"}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]},
                                        "b": {"if": {"$ref": "#/$defs/a"}}}},
    ],
)  # fmt: skip
def test_a_schema_that_is_a_part_of_itself_is_refused(schema: object) -> None:
    with pytest.raises(RequestError, match="the schema is one of its own parts"):
        texts_of(schema)


def test_a_reference_to_what_is_no_schema_is_refused() -> None:
    with pytest.raises(RequestError, match="#/const is 5: a schema is an object, true or false"):
        texts_of({"$ref": "#/const", "const": 5})


def test_a_registered_schema_is_found_and_refers_to_others() -> None:
    registry = (
        ("http://a.org/list", '{"type": "array", "items": {"$ref": "item#/$defs/n"}}'),
        ("http://a.org/item", '{"$defs": {"n": {"type": "null"}}}'),
    )
    schema = {"$ref": "http://a.org/list"}
    texts = texts_of(schema, SchemaOptions(registry=registry))
    assert texts.of("[null]", "[]", "[1]", "null") == "[null] []"
    with pytest.raises(RequestError, match="nothing is fetched"):
        texts_of(schema)
    with pytest.raises(RequestError, match=r"registry.*http://a.org/list.*: not JSON"):
        texts_of(schema, SchemaOptions(registry=(("http://a.org/list", "{"),)))


def test_a_dialect_may_be_referred_to_by_its_uri() -> None:
    texts = texts_of({"$ref": DRAFT_7})
    assert texts.of('{"type":"object"}', '{"type":"x"}', "true") == '{"type":"object"} true'


def test_a_tree_may_be_deep() -> None:
    node = {"properties": {"left": {"$ref": "#"}, "v": NULL}, "additionalProperties": False}
    value: object = {"v": None}
    for _ in range(120):
        value = {"left": value}
    texts = texts_of({"type": "object", **node})
    assert texts.holds(value)
    assert not texts.holds({"left": {"left": {"v": 1}}})


def test_a_dynamic_reference_leads_to_the_outermost_anchor_in_scope() -> None:
    tree = {
        "$id": "tree", "$dynamicAnchor": "node", "type": "object",
        "properties": {"data": True, "children": {"items": {"$dynamicRef": "#node"}}},
    }  # fmt: skip
    strict = {
        "$id": "http://a.org/strict", "$dynamicAnchor": "node", "$ref": "tree",
        "unevaluatedProperties": False, "$defs": {"tree": tree},
    }  # fmt: skip
    texts = texts_of(strict)
    for value in [{"children": [{"data": 1}]}, {"children": [{"daat": 1}]}, {"daat": 1}]:
        assert texts.holds(value) == is_valid(strict, value), value
