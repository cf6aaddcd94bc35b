"""What a grammar guarantees and what it only checks, found before any text is written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar.explain import (
    compile_plain,
    explain,
    is_exact,
    match,
    mismatch,
    samples,
)
from plait.runtime.grammar.spec import GrammarSpec, SchemaOptions


def schema(value: object, **options: Any) -> GrammarSpec:
    return GrammarSpec("json_schema", (json.dumps(value),), (), SchemaOptions(**options))


UNIQUE = {"items": {"type": "integer"}, "uniqueItems": True}

# Schemas of which something is only checked, and its place.
CHECKED: list[tuple[dict[str, Any], str]] = [
    (UNIQUE, "#/uniqueItems"),
    ({"format": "idn-email"}, "#/format"),
    (
        {"properties": {"a": {"properties": {"b": UNIQUE}}}},
        "#/properties/a/properties/b/uniqueItems",
    ),
    ({"items": {"anyOf": [{"type": "null"}, UNIQUE]}}, "#/items/anyOf/1/uniqueItems"),
    ({"prefixItems": [{}, UNIQUE]}, "#/prefixItems/1/uniqueItems"),
    ({"contains": {"format": "regex"}}, "#/contains/format"),
    ({"additionalProperties": UNIQUE}, "#/additionalProperties/uniqueItems"),
    ({"patternProperties": {"^x": UNIQUE}}, "#/patternProperties/^x/uniqueItems"),
    ({"$ref": "#/$defs/u", "$defs": {"u": UNIQUE}}, "#/$defs/u/uniqueItems"),
    ({"properties": {"k": {"$ref": "#"}, "u": UNIQUE}}, "#/properties/u/uniqueItems"),
    ({"not": {"const": [1, 2]}}, "#/not/const"),
    ({"not": {"uniqueItems": True}}, "#/not/uniqueItems"),
]


@pytest.mark.parametrize(("value", "place"), CHECKED)
def test_what_is_only_checked_is_found_and_strict_refuses_it(
    value: dict[str, Any], place: str
) -> None:
    found = explain(schema(value))
    assert not found.refused
    assert place in dict(found.checked)
    assert place not in found.exact
    assert not is_exact(schema(value))
    with pytest.raises(RequestError, match="strict") as caught:
        compile_plain(schema(value, is_strict=True))
    assert caught.value.code == "bad_grammar"
    assert place in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        True,
        {"type": "string", "pattern": "^a+$", "maxLength": 3},
        {"enum": ["a", 1, None, {"k": [1]}]},
        {"items": {"enum": [1, 2, 3]}, "uniqueItems": True},
        {"type": "integer", "format": "idn-email"},
        {"properties": {"v": {"type": "integer"}, "k": {"items": {"$ref": "#"}}}},
        {"$defs": {"unused": UNIQUE}},
    ],
)
def test_what_the_mask_guarantees_is_taken_by_strict(value: object) -> None:
    assert not explain(schema(value)).checked
    assert is_exact(schema(value))
    compile_plain(schema(value, is_strict=True))


def test_what_takes_too_long_to_survey_is_not_called_exact() -> None:
    wide = {"anyOf": [{"contains": {"const": i}} for i in range(40)]}
    assert not is_exact(schema({"allOf": [wide] * 3}))


def test_keywords_without_a_meaning_are_listed() -> None:
    value = {"minlength": 3, "title": "a", "properties": {"a": {"contentEncoding": "base64"}}}
    found = explain(schema(value))
    assert found.ignored == ("#/minlength", "#/properties/a/contentEncoding")
    assert found.exact == ("#/properties",)


def test_an_explanation_reads_as_a_list() -> None:
    assert str(explain(schema({"type": "null"}))).splitlines()[:3] == [
        "kind: json_schema",
        "exact:",
        "  #/type",
    ]
    assert str(explain(GrammarSpec("regex", ("(",)))).splitlines()[1].startswith("refused: regex")


@pytest.mark.parametrize(
    ("spec", "inside", "outside"),
    [
        (schema({"type": "integer"}), "12", "1.5"),
        (GrammarSpec("regex", ("[a-z]é?",)), "aé", "é"),
        (GrammarSpec("choices", ("a", "ab")), "ab", "b"),
        (GrammarSpec("lark", ('start: "a"+',)), "aa", "\ud800"),
        (GrammarSpec("ebnf", ('root ::= "a" | "b" root',)), "bba", "bb"),
    ],
    ids=lambda each: each.kind if isinstance(each, GrammarSpec) else None,
)
def test_a_text_matches_as_a_whole(spec: GrammarSpec, inside: str, outside: str) -> None:
    assert match(spec, inside)
    assert not match(spec, outside)
    grammar = compile_plain(spec)
    assert not mismatch(grammar, inside)
    assert mismatch(grammar, outside)
    assert all(match(spec, text) for text in samples(grammar, 5, 0, 40))
    assert samples(grammar, 5, 0, 40) == samples(grammar, 5, 0, 40)
    assert explain(spec).num_parts > 0
