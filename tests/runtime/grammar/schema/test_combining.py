"""Schemas made of schemas: options, parts, conditions and what they leave over."""

from __future__ import annotations

from .schemas import closed, kept, texts


def test_a_constant_property_tells_the_options_apart() -> None:
    schema = {
        "anyOf": [
            closed({"op": {"const": "add"}, "n": {"type": "integer"}}, "op", "n"),
            closed({"op": {"const": "addAll"}, "s": {"type": "null"}}, "op", "s"),
        ]
    }
    right = ['{"op":"add","n":1}', '{"op":"addAll","s":null}']
    kept(schema, right, ['{"op":"add","s":null}', '{"op":"addAll","n":1}', '{"op":"ad","n":1}'])


def test_of_options_that_overlap_exactly_one_matches() -> None:
    schema = {"oneOf": [{"type": "integer", "multipleOf": 2}, {"type": "integer", "minimum": 5}]}
    kept(schema, ["2", "5", "-4", "7"], ["6", "8", "3", "1"])


def test_an_integer_or_a_number_is_a_number_that_is_no_integer() -> None:
    kept({"oneOf": [{"type": "integer"}, {"type": "number"}]}, ["1.5", "-0.25"], ["1", "1.0", "0"])


def test_options_that_meet_in_required_names_exclude_each_other() -> None:
    schema = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    kept(schema, ['{"a":1}', '{"b":1,"c":1}'], ["{}", '{"a":1,"b":1}', '{"c":1}'])


def test_options_that_refer_to_the_whole_exclude_each_other() -> None:
    options = [{"required": [name], "properties": {name: {"$ref": "#"}}} for name in ("a", "b")]
    schema = {"type": "object", "oneOf": [*options, {"maxProperties": 0}]}
    kept(schema, ["{}", '{"a":{}}', '{"a":{"b":{}}}'], ['{"a":{},"b":{}}', '{"a":1}', '{"c":1}'])


def test_parts_hold_together_with_the_whole() -> None:
    part = {"properties": {"y": {"type": "string"}}, "required": ["y"]}
    schema = {"type": "object", "properties": {"x": {"const": 1}}, "allOf": [part]}
    kept(
        schema,
        ['{"y":""}', '{"x":1,"y":"s"}'],
        ["{}", '{"x":1}', '{"x":1,"y":2}', '{"x":2,"y":""}'],
    )


def test_a_condition_decides_what_else_is_required() -> None:
    schema = {
        **closed({"t": {"enum": ["a", "b"]}, "x": {}, "y": {}}, "t"),
        "if": {"properties": {"t": {"const": "a"}}},
        "then": {"required": ["x"]},
        "else": {"required": ["y"]},
    }
    right = ['{"t":"a","x":1}', '{"t":"b","y":1}', '{"t":"a","x":1,"y":2}']
    kept(schema, right, ['{"t":"a"}', '{"t":"b","x":1}', '{"t":"a","y":1}', '{"t":"c"}'])


def test_one_name_may_require_another() -> None:
    schema = {"type": "object", "dependentRequired": {"card": ["address"]}}
    found = texts(schema, is_any_order=True)
    right = ["{}", '{"address":1}', '{"card":1,"address":2}', '{"address":2,"z":0,"card":1}']
    assert found.of(*right, '{"card":1}', '{"z":0,"card":1}') == " ".join(right)


def test_what_no_keyword_has_looked_at_is_refused() -> None:
    schema = {
        "type": "object",
        "anyOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 2}}}],
        "unevaluatedProperties": False,
    }
    kept(schema, ['{"a":1}', '{"b":2}', '{"a":1,"b":2}'], ['{"c":1}', '{"a":2,"b":1}'])


def test_a_value_that_is_not_something_is_anything_else() -> None:
    kept(
        {"not": {"type": ["string", "array", "object"]}}, ["1", "null", "true"], ['""', "[]", "{}"]
    )
