"""Values that a schema or choices allow, to the letter: what users of other engines met with."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from enum import Enum, IntEnum
from typing import Any, Literal

import pytest

import plait
from plait import Backend, Grammar, GrammarError, State, function, gen


@function
def ask(s: State, options: dict[str, Any]) -> None:
    s += "say:"
    s += gen("x", **options)


def say(prompt: str) -> str:
    return "yes" if prompt.endswith("say:") else ""


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = plait.scripted(say)
    yield opened
    opened.close()


def value_of(script: Callable[[str], Any], **options: Any) -> Any:
    backend = plait.scripted(script)
    try:
        return ask.run(options={"temperature": 0, **options}, backend=backend)["x"]
    finally:
        backend.close()


def saying(text: str) -> Callable[[str], str]:
    return lambda prompt: text


def matches(schema: object, texts: list[str]) -> list[str]:
    grammar = Grammar(schema=schema)
    return [text for text in texts if grammar.match(text)]


# Strings with a bound


SHORT = {"type": "string", "maxLength": 3}


def test_a_bounded_string_holds_every_escape_and_counts_characters() -> None:
    good = [r'"a\nb"', r'"\""', r'"\\\\\\"', '"🙏🙏🙏"', r'"\u0001"', r'"\ud83d\ude4f"', r'"\/é"']
    assert matches(SHORT, [*good, '"\x7f"']) == [*good, '"\x7f"']
    assert all(len(json.loads(text)) <= 3 for text in good)


def test_a_bounded_string_holds_nothing_that_json_does_not() -> None:
    bad = ['"\t"', '"a\nb"', r'"\n\n\n\n"', '"\\"', '"abcd"', r'"\ud83d"', "'a'", '"a']
    assert matches(SHORT, bad) == []


def test_random_bounded_strings_all_parse() -> None:
    grammar = Grammar(schema=SHORT)
    lengths = [len(json.loads(grammar.sample(seed))) for seed in range(200)]
    assert set(lengths) <= {0, 1, 2, 3}


def test_whatever_a_model_likes_best_its_bounded_string_parses() -> None:
    def wild(prompt: str) -> dict[str, float]:
        rng = random.Random(prompt)
        return {rng.choice('"\\\n\tau/é'): 0.5, rng.choice('"\\abu0'): 0.3, "x": 0.2}

    backend = plait.scripted(wild)
    rows = [{"options": {"schema": SHORT, "stop": f"never{i}"}} for i in range(100)]
    results = ask.run_batch(rows, backend=backend, seed=1)
    assert all(len(result["x"]) <= 3 for result in results)
    backend.close()


# Numbers


def test_numbers_are_those_of_json() -> None:
    good = ["0", "-0", "10", "3.5", "1e5", "1E+5", "-1.5e-3"]
    bad = ["3.5.5", "02", "1.e2", "1.", ".5", "-", "+1", "01.5", "NaN", "Infinity", "1e400", ""]
    assert matches({"type": "number"}, [*good, *bad]) == good


def test_integers_are_written_plainly() -> None:
    assert matches({"type": "integer"}, ["7", "-7", "007", "1.5", "1.0", "1e2"]) == ["7", "-7"]


def test_bounds_of_numbers_hold_exactly() -> None:
    between = {"type": "number", "minimum": 0.1, "maximum": 0.35}
    assert matches(between, ["0.1", "0.35", "0.2", "0.09", "0.351", "1"]) == ["0.1", "0.35", "0.2"]
    negative = {"type": "integer", "minimum": -5, "maximum": -2}
    texts = [str(number) for number in range(-7, 2)]
    assert matches(negative, texts) == ["-5", "-4", "-3", "-2"]


def test_a_model_that_writes_nines_for_ever_comes_to_an_end() -> None:
    number = {"type": "number"}
    schema = {
        "type": "object",
        "properties": {"n": number, "m": number},
        "required": ["n", "m"],
        "additionalProperties": False,
    }
    value = value_of(lambda prompt: "9" * 400, schema=schema, max_tokens=300)
    assert set(value) == {"n", "m"}
    assert min(value.values()) > 10**19


# Constants


CONSTANTS: list[Any] = [
    *(None, True, 1, 1.5, 'q"\\', "a.b*(c)[", "", "é", "\n", {"k": [1, None]}, [], "ab", "abc"),
]


@pytest.mark.parametrize("constant", CONSTANTS, ids=repr)
def test_a_constant_is_written_as_json_writes_it(constant: Any) -> None:
    text = json.dumps(constant, ensure_ascii=False, separators=(",", ":"))
    for schema in ({"const": constant}, {"enum": CONSTANTS}):
        value = value_of(lambda prompt: text, schema=schema)
        assert value == constant
        assert type(value) is type(constant)


def test_constants_are_taken_literally() -> None:
    assert matches({"const": "a.b*(c)["}, ['"a.b*(c)["', '"axbb(c)["']) == ['"a.b*(c)["']
    assert matches({"enum": [None, True]}, ["None", "True", "true", "null"]) == ["true", "null"]


class Mood(Enum):
    GOOD = "good"
    NONE = None


class Level(IntEnum):
    LOW = 1
    HIGH = 10


def test_enums_and_literals_come_back_as_what_they_are() -> None:
    assert value_of(lambda prompt: "null", schema=Mood) is Mood.NONE
    assert value_of(lambda prompt: "10", schema=Level) is Level.HIGH
    assert value_of(lambda prompt: "true", schema=Literal["a", True, 2]) is True


# References


PAIR = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
REGISTRY = {"http://a.org/pair": PAIR}


def test_a_reference_is_found_in_the_registry() -> None:
    schema = {"$ref": "http://a.org/pair"}
    value = value_of(lambda prompt: "[1,2]", schema=schema, registry=REGISTRY)
    assert value == [1, 2]
    assert Grammar(schema=schema, registry=REGISTRY).explain().checked == (
        ("#/uniqueItems", "that no two items are equal is validated at the end"),
    )


def test_what_a_registered_schema_checks_is_checked() -> None:
    schema = {"$ref": "http://a.org/pair"}
    with pytest.raises(plait.Invalid, match="non-unique"):
        value_of(lambda prompt: "[1,1]", schema=schema, registry=REGISTRY)


def test_a_registered_schema_that_is_none_is_refused_by_its_uri() -> None:
    registry = {"http://a.org/bad": {"type": "text"}}
    with pytest.raises(GrammarError, match=r"registry\['http://a.org/bad'\]: #/type: 'text'"):
        value_of(lambda prompt: "1", schema={}, registry=registry)


def test_what_the_registry_lacks_is_not_fetched() -> None:
    with pytest.raises(GrammarError, match=r"cannot resolve 'http://a.org/x'.*into registry="):
        value_of(lambda prompt: "1", schema={"$ref": "http://a.org/x"})


def test_choices_are_taken_literally() -> None:
    choices = ["a.b*(c)[", 'q"\\', "é", "\n", "ab", "abc"]
    for choice in choices:
        assert value_of(saying(choice), choices=choices) == choice


# Objects


def obj(*names: str, required: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    properties = {name: {"type": "integer"} for name in names}
    closed = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**closed, "required": list(required), **more}


def test_an_optional_property_may_come_before_a_required_one() -> None:
    texts = ['{"b":1}', '{"a":2,"b":1}', '{"a":2}', '{"b":1,}', '{"b":1,"a":2}', "{}"]
    assert matches(obj("a", "b", required=("b",)), texts) == texts[:2]


def test_of_three_optional_properties_any_may_be_there() -> None:
    subsets = [{name: 1 for i, name in enumerate("abc") if number >> i & 1} for number in range(8)]
    texts = [json.dumps(subset, separators=(",", ":")) for subset in subsets]
    assert matches(obj(*"abc"), texts) == texts
    assert matches(obj(*"abc"), ["{,}", '{"a":1,}', '{,"a":1}', '{"c":1,"a":1}']) == []


def test_a_required_name_that_no_property_lists_has_to_come() -> None:
    opened = {"type": "object", "properties": {}, "required": ["z"]}
    assert matches(opened, ['{"z":[1]}', "{}", '{"y":1}']) == ['{"z":[1]}']
    with pytest.raises(GrammarError, match="no value matches"):
        Grammar(schema=obj(required=("z",))).match("{}")


def test_patterns_of_names_and_additional_properties_hold_together() -> None:
    schema = {
        "type": "object",
        "patternProperties": {"^s_": {"type": "string"}},
        "additionalProperties": {"type": "integer"},
    }
    good = ['{"s_a":"b","c":1}', "{}"]
    assert matches(schema, [*good, '{"s_a":1}', '{"c":"d"}', '{"\\u0073_a":1}']) == good


def test_the_lookahead_of_a_decimal_field_works() -> None:
    pattern = r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"
    schema = {"type": "string", "pattern": pattern}
    assert matches(schema, ['"1.50"', '"-.5"', '"."', '"+"', '""']) == ['"1.50"', '"-.5"']


def test_a_property_never_comes_twice() -> None:
    assert matches(obj("a", "b"), ['{"a":1,"a":1}', '{"a":1,"\\u0061":2}']) == []
    assert matches({"type": "object"}, ['{"x":1,"x":2}', '{"x":1,"y":2}']) == ['{"x":1,"y":2}']
