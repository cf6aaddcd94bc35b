"""The parts of docs/grammars.md that follow from the code.

Rewrite them: python tests/plait/grammar_page.py
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

from plait import Grammar
from plait.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "grammars.md"

TUPLE = {"prefixItems": [{"type": "integer"}], "items": False}
NAMED = {"properties": {"a": {"type": "integer"}}}
NUMBERS = {"items": {"type": "integer"}}
LISTED = {"items": {"enum": [1, 2, 3]}}

# One schema a row: what is said of it is what `explain` finds.
PROBES: dict[str, list[dict[str, Any]]] = {
    "all types": [
        {"type": ["integer", "null"]},
        {"enum": [1, "a", None, {"k": [1]}]},
        {"const": [1, 2]},
        {"not": {"enum": ["a", 1]}},
        {"not": {"const": [1, 2]}},
    ],
    "strings": [
        {"minLength": 2, "maxLength": 9},
        {"pattern": "(?!abc)\\p{L}+"},
        {"format": "date"},
        {"format": "idn-email"},
    ],
    "numbers": [
        {"minimum": 0, "exclusiveMaximum": 1},
        {"exclusiveMinimum": 0, "maximum": 1},
        {"multipleOf": 0.01},
        {"divisibleBy": 2},
    ],
    "arrays": [
        TUPLE,
        {"items": [{"type": "integer"}], "additionalItems": False},
        {"minItems": 1, "maxItems": 3},
        {"contains": {"type": "null"}, "minContains": 1, "maxContains": 2},
        {**LISTED, "uniqueItems": True},
        {**NUMBERS, "uniqueItems": True},
        {"prefixItems": [{}], "unevaluatedItems": False},
    ],
    "objects": [
        {**NAMED, "required": ["a"], "additionalProperties": False},
        {"patternProperties": {"^x-": {"type": "string"}}},
        {"propertyNames": {"maxLength": 5}},
        {"minProperties": 1, "maxProperties": 3},
        {"dependentRequired": {"a": ["b"]}},
        {"dependentSchemas": {"a": {"required": ["b"]}}},
        {"dependencies": {"a": ["b"]}},
        {**NAMED, "unevaluatedProperties": False},
    ],
    "combining": [
        {"allOf": [{"minLength": 1}, {"pattern": "a"}]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"not": {"pattern": "a"}},
        {"if": NAMED, "then": {"required": ["a"]}, "else": {"required": ["b"]}},
        {"not": {"uniqueItems": True}},
        {"not": {"unevaluatedProperties": False}},
    ],
    "references": [
        {"$ref": "#/$defs/t", "$defs": {"t": {"items": {"$ref": "#/$defs/t"}}}},
        {"items": {"$dynamicRef": "#t"}, "$dynamicAnchor": "t"},
        {"items": {"$recursiveRef": "#"}, "$recursiveAnchor": True},
        {"$ref": "#"},
        {"$ref": "https://example.org/other.json"},
        {"$ref": "#/$defs/nope"},
    ],
    "no values": [{"type": "integer", "minimum": 5, "maximum": 3}, {"enum": []}],
    "not JSON Schema": [{"type": "text"}, {"pattern": "("}, {"pattern": "(a)\\1"}],
}
FORMATS = (
    *("date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"),
    *("uri-reference", "uri-template", "json-pointer", "relative-json-pointer", "idn-email"),
    *("idn-hostname", "iri", "iri-reference", "regex"),
)


def verdict(schema: dict[str, Any]) -> str:
    """Give what becomes of a schema, in a few words."""
    found = Grammar(schema=schema).explain()
    if found.refused:
        return f"refused: {_cell(found.refused)}"
    if found.checked:
        return "; ".join(f"checked: `{place}`, {reason}" for place, reason in found.checked)
    return "exact"


def keywords() -> str:
    """Give the table of keywords."""
    lines = ["| of | schema | |", "|---|---|---|"]
    for group, schemas in PROBES.items():
        for schema in schemas:
            text = json.dumps(schema).replace("|", "\\|")
            lines.append(f"| {group} | `{text}` | {verdict(schema)} |")
    return "\n".join(lines)


def formats() -> str:
    """Give the two lists of formats."""
    checked = [name for name in FORMATS if Grammar(schema={"format": name}).explain().checked]
    exact = [name for name in FORMATS if name not in checked]
    return f"- exact: {', '.join(exact)}\n- checked: {', '.join(checked)}, and every other name"


def console(command: str) -> str:
    """Run a `plait` command as from the repository's root, and give what it prints."""
    out = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main(shlex.split(command)[1:])
    return out.getvalue()


def rendered(page: str) -> str:
    """Give the page with all that follows from the code made anew."""
    for name, make in (("keywords", keywords), ("formats", formats)):
        part = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = make().replace("\\", r"\\")
        page = part.sub(rf"\1\n{text}\n\n\2", page)
    block = re.compile(r"(```console\n\$ (plait grammar [^\n]*)\n).*?```", re.DOTALL)
    return block.sub(lambda m: f"{m[1]}{console(m[2])}```", page)


def stable(page: str) -> str:
    """Give the page without what changes with the automata: sizes, and which texts are drawn."""
    page = re.sub(r"^size: .*?```", "```", page, flags=re.DOTALL | re.MULTILINE)
    return re.sub(
        r"(\$ plait grammar [^\n]*--sample [^\n]*\n).*?```", r"\1```", page, flags=re.DOTALL
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text()))
