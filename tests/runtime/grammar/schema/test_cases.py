"""Behaviours of JSON Schema that engines are known to get wrong, each in a few texts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plait.runtime.grammar.explain import compile_plain
from plait.runtime.grammar.sample import matches
from plait.runtime.grammar.spec import GrammarSpec

from .schemas import closed, kept, texts
from .words import shared


def test_lengths_hold_beside_a_pattern() -> None:
    schema = {"type": "string", "pattern": "^[0-9.]*$", "minLength": 3, "maxLength": 5}
    kept(schema, ['"1.2"', '"12345"'], ['"12"', '"123456"', '"12a"', '""'])


def test_a_pattern_is_searched_anywhere() -> None:
    kept({"type": "string", "pattern": "ab"}, ['"ab"', '"xxabxx"'], ['"a"', '"ba"'])


def test_each_branch_of_a_pattern_has_its_own_anchors() -> None:
    schema = {"type": "string", "pattern": "^x|y$"}
    kept(schema, ['"xq"', '"qy"', '"x"'], ['"qxq"', '"yq"', '""'])


def test_an_escape_counts_as_one_character() -> None:
    schema = {"type": "string", "maxLength": 2}
    kept(
        schema,
        [r'"\t\t"', r'"\"\\"', r'"\u00e9\u00E9"', r'"\/é"'],
        [r'"\t\t\t"', '"\t"', r'"\x41"', r'"\u00e"'],
    )


def test_an_astral_character_counts_once_however_it_is_spelt() -> None:
    schema = {"type": "string", "minLength": 1, "maxLength": 1}
    kept(schema, ['"🐈"', r'"\ud83d\udc08"', r'"\uD83D\uDC08"'], ['"🐈🐈"', '""', '"ab"'])


def test_a_quote_inside_a_text_is_escaped() -> None:
    schema = closed({"q": {"type": "string"}}, "q")
    kept(schema, [r'{"q":"\"C:\\\" a"}'], ['{"q":"a"b"}', r'{"q":"\"}', r'{"q":"\\""}'])


def test_a_backslash_before_another_letter_is_no_escape() -> None:
    kept({"type": "string"}, ['"ä"', r'"\\ä"'], [r'"\ä"', r'"\a"', r'"\U0041"'])


def test_shorthand_classes_are_those_of_ecma() -> None:
    schema = {"type": "string", "pattern": r"^\d\w\s$"}
    kept(schema, [r'"1_\t"', '"9z "'], ['"٣a "', '"1é "', '"1a_"'])


def test_a_control_character_is_always_escaped() -> None:
    kept({"pattern": "^[\x00\x1f]+$"}, [r'"\u0000\u001f"', r'"\u001F"'], ['"\x00"', r'"\x00"'])


def test_a_listed_value_is_written_in_one_way() -> None:
    right = ['"é\\u0007"', '{"é":[1.5,"/"]}']
    wrong = [r'"\u00e9\u0007"', '{ "é":[1.5,"/"]}', r'{"é":[1.5,"\/"]}', '{"é":[1.50,"/"]}']
    kept({"enum": ["é\x07", {"é": [1.5, "/"]}]}, right, wrong)


def test_listed_values_may_be_of_several_types() -> None:
    schema = {"enum": ["2", 2, None, False, [], {"k": [0]}]}
    right = ['"2"', "2", "null", "false", "[]", '{"k":[0]}']
    kept(schema, right, ["0", "true", "{}", '"null"', "22", '{"k":[]}'])


def test_a_list_narrows_to_the_types_beside_it() -> None:
    kept({"enum": [1, "1", 1.5, None], "type": ["integer", "null"]}, ["1", "null"], ['"1"', "1.5"])


def test_listed_values_are_held_against_the_other_keywords() -> None:
    kept(
        {"enum": [1, 5, 9, "abc", "d"], "minimum": 4, "maxLength": 2}, ["5", '"d"'], ["1", '"abc"']
    )


def test_names_and_values_need_not_be_ascii() -> None:
    schema = closed({"答え": {"enum": ["はい", "いいえ"]}}, "答え")
    kept(schema, ['{"答え":"いいえ"}'], ['{"答え":"いい"}', '{"答":"はい"}', "{}"])


def test_a_bound_below_zero_holds_for_both_signs() -> None:
    schema = {"type": "integer", "minimum": -12, "maximum": 3}
    kept(schema, ["-12", "-9", "-1", "0", "3"], ["-13", "-20", "-100", "4", "10", "-1.5", "01"])


def test_bounds_of_a_number_hold_for_fractions_and_exponents() -> None:
    schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 2.5}
    kept(schema, ["0.001", "2.5", "2.50", "1e-7", "2.5e+0"], ["0", "0.0", "2.51", "3", "1e1", "-1"])


def test_a_multiple_holds_inside_bounds() -> None:
    schema = {"type": "integer", "multipleOf": 4, "exclusiveMinimum": -9, "exclusiveMaximum": 20}
    kept(schema, ["-8", "0", "16"], ["-12", "6", "20", "-9"])


def test_a_number_has_no_needless_zero_sign_or_point() -> None:
    schema = {"type": "array", "items": {"type": "number"}}
    kept(schema, ["[0,-1.25,3e5,10]"], ["[00]", "[1.]", "[.1]", "[+1]", "[-]", "[1e]", "[0x1]"])


def test_an_array_of_a_union_takes_each_kind_in_any_order() -> None:
    schema = {
        "type": "array",
        "minItems": 1,
        "items": {"anyOf": [{"type": "null"}, {"const": "x"}]},
    }
    kept(schema, ["[null]", '["x",null,"x"]'], ["[]", "[1]", '["x" ,null]'])


def test_a_prefix_asks_for_no_length_and_says_nothing_of_the_rest() -> None:
    schema = {"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}]}
    kept(schema, ["[]", "[null]", "[null,true]", '[null,true,"x",1]'], ["[true]", "[null,null]"])


def test_no_listed_value_comes_twice_where_items_are_unique() -> None:
    schema = {"type": "array", "items": {"enum": [1, 2, "1"]}, "uniqueItems": True}
    kept(schema, ["[]", '[1,"1",2]', "[2]"], ["[1,1]", '["1",2,"1"]', '[1,2,"1",1]'])


def test_a_bare_object_takes_any_names_and_values() -> None:
    kept({"type": "object"}, ["{}", '{"":[{"a":null}]}'], ["[]", '{"a"}', "{a:1}", '{"a":1,}'])


def test_the_empty_schema_takes_any_value() -> None:
    kept(closed({"v": {}}, "v"), ['{"v":null}', '{"v":[{}]}', '{"v":""}'], ["{}", '{"v":}'])


def test_a_required_name_need_not_be_listed() -> None:
    schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["z"]}
    kept(schema, ['{"z":[]}', '{"a":1,"z":0}'], ["{}", '{"a":1}', '{"a":2,"z":0}', '{"y":1}'])


def test_other_names_may_begin_like_a_listed_one() -> None:
    schema = {
        "type": "object",
        "properties": {"key": {"const": 1}, "keys": {"const": 2}},
        "additionalProperties": {"type": "null"},
    }
    right = ['{"key":1,"keys":2,"ke":null}', '{"keyss":null}', '{"k":null,"":null}']
    kept(schema, right, ['{"key":null}', '{"keys":1}', '{"ke":1}', '{"keyss":2}'])


@pytest.mark.parametrize("is_any_order", [False, True])
def test_a_listed_name_never_slips_in_as_another_one(is_any_order: bool) -> None:
    schema = {"type": "object", "properties": {"id": {"const": 1}}}
    found = texts(schema, is_any_order=is_any_order)
    wrong = ['{"id":2}', r'{"\u0069d":2}', r'{"i\u0064":2}', '{"z":0,"id":2}', '{"id":1,"id":2}']
    assert found.of(*wrong, r'{"\u0069\u0064":2}', r'{"z":0,"i\u0064":2}') == ""
    assert found.of('{"id":1}', '{"ID":2}', r'{"\u0069":2}') == r'{"id":1} {"ID":2} {"\u0069":2}'


def test_a_pattern_for_names_holds_for_the_listed_ones_too() -> None:
    schema = {
        **closed({"nx": {"multipleOf": 3}}),
        "patternProperties": {"^n": {"type": "integer", "maximum": 10}},
    }
    kept(schema, ['{"nx":9}', '{"nx":6,"ny":10}', '{"n":-1}'], ['{"nx":12}', '{"nx":7}', '{"m":1}'])


def test_two_patterns_for_one_name_both_hold() -> None:
    schema = {
        "type": "object",
        "patternProperties": {"^a": {"minimum": 1}, "b$": {"type": "integer"}},
        "additionalProperties": False,
    }
    kept(
        schema, ['{"ab":1}', '{"a":1.5,"b":0}'], ['{"ab":0}', '{"ab":1.5}', '{"b":0.5}', '{"c":1}']
    )


def test_names_keep_to_what_is_said_of_names() -> None:
    schema = {
        "type": "object",
        "propertyNames": {"pattern": "^[A-Z]+$", "maxLength": 2},
        "properties": {"OK": {"const": 1}, "no": {}},
    }
    kept(schema, ['{"OK":1}', '{"A":0,"ZZ":1}'], ['{"no":1}', '{"AAA":1}', '{"OK":2}', '{"":1}'])


def test_optional_properties_may_be_missing_around_a_required_one() -> None:
    schema = closed({name: {"type": "null"} for name in "abc"}, "b")
    right = ['{"b":null}', '{"a":null,"b":null}', '{"b":null,"c":null}']
    kept(schema, right, ["{}", '{"a":null}', '{,"b":null}', '{"b":null,}', '{"a":null"b":null}'])


def test_free_names_are_counted() -> None:
    schema = {"type": "object", "minProperties": 2, "maxProperties": 3}
    kept(schema, ['{"a":1,"b":1}', '{"a":1,"b":1,"c":1}'], ["{}", '{"a":1}'])
    assert not texts(schema).holds(dict.fromkeys("abcd", 1))


@pytest.mark.parametrize("depth", [1, 51, 200])
def test_values_may_be_nested_as_deep_as_they_like(depth: int) -> None:
    item = closed({"name": {"pattern": "^{.*}$"}, "of": {"$ref": "#"}}, "name")
    schema = {"type": "array", "items": item}
    text = '[{"name":"{x}","of":' * depth + "[]" + "}]" * depth
    wrong = [text.replace("{x}", "{x", 1), text[:-1], text.replace("[]", "{}")]
    assert texts(schema).of(text, *wrong) == text


def test_long_bounds_inside_long_bounds_are_counted() -> None:
    schema = {"type": "array", "maxItems": 60, "items": closed({"t": {"maxLength": 1500}}, "t")}
    found = texts(schema)
    assert found.holds([{"t": "é" * 1500}])
    assert not found.holds([{"t": "é" * 1501}])
    assert found.holds([{"t": ""}] * 60)
    assert not found.holds([{"t": ""}] * 61)


@pytest.mark.slow
def test_the_shared_cases_are_right() -> None:
    cases = shared("shared/cases/grammar_cases.jsonl", "the grammar cases").read_text("utf-8")
    wrong = [line for line in cases.splitlines() if not _is_right(json.loads(line))]
    assert wrong == []


def _is_right(case: dict[str, Any]) -> bool:
    grammar = compile_plain(GrammarSpec(case["kind"], (case["grammar"],)))
    accepted = [matches(grammar.start, grammar.pool, text) for text in case["accepts"]]
    rejected = [matches(grammar.start, grammar.pool, text) for text in case["rejects"]]
    return all(accepted) and not any(rejected)
