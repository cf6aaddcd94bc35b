"""What is wrong with a schema is said before the first token, with its place."""

from __future__ import annotations

import json

import pytest

from plait.runtime.errors import RequestError

from .schemas import texts_of


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"type": "strin"}, "#/not/type: is 'strin'; the types are object, array, .*integer"),
        ({"type": [["null"]]}, r"#/not/type: is \['null'\]"),
        ({"type": {"null": 1}}, "#/not/type: is {'null': 1}"),
        ({"minLength": -1}, "#/not/minLength: is -1; a whole number >= 0 is expected"),
        ({"maxItems": 1.5}, "#/not/maxItems: is 1.5; a whole number"),
        ({"minProperties": True}, "#/not/minProperties: is True; a whole number"),
        ({"contains": {}, "minContains": "1"}, "#/not/minContains: is '1'; a whole number"),
        ({"minimum": "1"}, "#/not/minimum: is '1'; a number is expected"),
        ({"multipleOf": 0}, "#/not/multipleOf: must be greater than 0"),
        ({"multipleOf": -2}, "#/not/multipleOf: must be greater than 0"),
        ({"pattern": 1}, "#/not/pattern: is 1; a text is expected"),
        ({"pattern": "("}, r"#/not/pattern: regex: a parenthesis is not closed at place 0"),
        ({"patternProperties": {"[": {}}}, "#/not/patternProperties: regex: "),
        ({"format": None}, "#/not/format: is None; a text is expected"),
        ({"required": "a"}, "#/not/required: is 'a'; a list of names is expected"),
        ({"required": [1]}, r"#/not/required: is \[1\]; a list of names is expected"),
        ({"properties": ["a"]}, r"#/not/properties: is \['a'\]; an object is expected"),
        ({"properties": {"a": 7}}, "#/not/properties/a is 7: a schema is an object, true or false"),
        ({"items": 7}, "#/not/items is 7: a schema is an object, true or false"),
        ({"prefixItems": [None]}, "#/not/prefixItems/0 is None: a schema is an object"),
        ({"contains": []}, "#/not/contains: a schema is expected"),
        ({"allOf": {}}, "#/not/allOf: a list of schemas is expected"),
        ({"oneOf": []}, "#/not/oneOf: a list of schemas is expected"),
        ({"anyOf": [3]}, "#/not/anyOf/0 is 3: a schema is an object"),
        ({"enum": "abc"}, "#/not/enum: a list of values is expected"),
        ({"dependentRequired": {"a": "b"}}, "#/not/dependentRequired/a is 'b'"),
        ({"dependentRequired": {"a": [1]}}, "#/not/dependentRequired: is .*a list of names"),
        ({"$ref": 7}, r"#/not/\$ref: is 7; a text is expected"),
    ],
)
def test_a_keyword_of_the_wrong_kind_is_named(keywords: object, message: str) -> None:
    with pytest.raises(RequestError, match=f"schema: {message}") as e:
        texts_of({"not": keywords})
    assert e.value.code == "bad_grammar"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "schema: not JSON"),
        ('{"type":', "schema: not JSON: .* column"),
        ("[1]", r"schema: # is \[1\]: a schema is an object, true or false"),
        ("null", "schema: # is None"),
        ('{"enum": [NaN, 1]}', "NaN is no number of JSON"),
        ('{"default": -Infinity}', "-Infinity is no number of JSON"),
        ('{"minimum": 1e400}', "1e400 is no number of JSON that can be kept"),
        ('{"const": [-1e999]}', "-1e999 is no number of JSON"),
        ('{"minimum": 1' + "0" * 5000 + "}", "not JSON: .*digits"),
        (r'{"const": "\ud800"}', "not JSON: .*surrogates"),
        (r'{"properties": {"a\uDFFF": {}}}', "not JSON: .*surrogates"),
    ],
)
def test_a_text_that_is_no_schema_is_refused(source: str, message: str) -> None:
    with pytest.raises(RequestError, match=message) as e:
        texts_of(source)
    assert e.value.code == "bad_grammar"


def test_pairs_of_surrogates_are_characters() -> None:
    assert texts_of(r'{"const": "\ud83d\ude4f"}').of('"🙏"', r'"\ud83d"') == '"🙏"'


def test_of_a_keyword_that_comes_twice_the_last_counts() -> None:
    assert texts_of('{"type": "string", "type": "null"}').of("null", '""') == "null"


@pytest.mark.parametrize("depth", [51, 5000, 100_000])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"properties": {"a": ', "}}"),
        ('{"items": ', "}"),
        ('{"not": ', "}"),
        ('{"allOf": [', "]}"),
        ('{"anyOf": [{}, ', "]}"),
        ('{"if": ', "}"),
    ],
)
def test_a_schema_that_is_nested_too_deeply_is_refused_or_compiled(
    before: str, after: str, depth: int
) -> None:
    source = before * depth + "{}" + after * depth
    if depth < 400:
        assert texts_of(source).holds([]) == ("not" not in before)
    else:
        with pytest.raises(RequestError, match="nested too deeply") as e:
            texts_of(source)
        assert e.value.code == "grammar_budget"


def test_a_long_chain_of_references_is_refused_or_compiled() -> None:
    chain: dict[str, object] = {str(i): {"$ref": f"#/$defs/{i + 1}"} for i in range(3000)}
    schema = {"$ref": "#/$defs/0", "$defs": {**chain, "3000": {"type": "null"}}}
    with pytest.raises(RequestError, match="nested too deeply"):
        texts_of(schema)
    short = json.dumps({"$ref": "#/$defs/2920", "$defs": schema["$defs"]})
    assert texts_of(short).of("null", "1") == "null"
