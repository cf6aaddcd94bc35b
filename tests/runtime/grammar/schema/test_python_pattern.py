"""ECMA's patterns as Python's: both find something in the same texts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from plait.runtime.grammar.explain import compile_plain, mismatch
from plait.runtime.grammar.schema.python_pattern import finds, python_pattern, replace_patterns
from plait.runtime.grammar.spec import GrammarSpec

TEXTS = [
    "",
    "a",
    "ab",
    "ba",
    "a1",
    "é",
    "É",
    "\n",
    "a\n",
    "٣",
    "\u00a0",
    "_",
    "a b",
    "🙏",
    "(",
    "\u2028",
]
PATTERNS = [
    *("a", "^a", "a$", "^a$", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".", "^.$", "[^a]", "[^]"),
    *(r"\p{Lu}", r"\bb", r"\Bb", "(?!a)b", "(?=a)ab", "(?<=a)b", "(?<!a)b", "a|^$", "(?:ab){1,2}"),
    *("", "^(?!a)", r"\/|\u0061", "(?<name>a)b", "[]", "^[\\u{1f64f}]?$", "(?i:A)b"),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_python_pattern_finds_what_ecma_finds(pattern: str) -> None:
    python = python_pattern(pattern)
    assert python is not None
    found = [text for text in TEXTS if re.search(python, text)]
    assert [text for text in TEXTS if finds(python, text)] == found
    if not found:
        return
    source = json.dumps({"type": "string", "pattern": pattern})
    grammar = compile_plain(GrammarSpec("json_schema", (source,)))
    texts = [text for text in TEXTS if not mismatch(grammar, json.dumps(text))]
    assert found == texts


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "(?<=a+)b"])
def test_what_python_cannot_have_is_left(pattern: str) -> None:
    assert python_pattern(pattern) is None
    assert finds(pattern, "b") is None
    schema: Any = {"pattern": pattern}
    replace_patterns(schema)
    assert schema == {"pattern": pattern}


def test_patterns_are_replaced_where_a_schema_has_them_and_nowhere_else() -> None:
    schema: Any = {
        "properties": {"pattern": {"not": {"pattern": "a"}}},
        "patternProperties": {"^x": {"enum": [{"pattern": "a"}]}},
        "const": {"pattern": "a"},
    }
    replace_patterns(schema)
    assert schema == {
        "properties": {"pattern": {"not": {"pattern": python_pattern("a")}}},
        "patternProperties": {python_pattern("^x"): {"enum": [{"pattern": "a"}]}},
        "const": {"pattern": "a"},
    }
