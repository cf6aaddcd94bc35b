"""An operation in words: as its author wrote it, or with all that it says."""

from __future__ import annotations

import json
from dataclasses import fields

from .ops import (
    Constraint,
    Gen,
    GrammarText,
    Input,
    JsonSchema,
    Op,
    RoleBegin,
    RoleEnd,
    Sampling,
    Score,
    Select,
    Text,
    Value,
)

_WIDTH = 48  # characters of a text that are shown


def spell(op: Op) -> str:
    """Give an operation as its author wrote it, as far as a message needs: `gen("x")`."""
    match op:
        case Gen(name=name):
            return f"gen({_quoted(name)})"
        case Select(name=name):
            return f"select({_quoted(name)})"
        case RoleBegin(role=role) | RoleEnd(role=role):
            return f"{role} turn"
        case Input(name=name):
            return f"input {_quoted(name)}"
        case Value():
            return "value"
        case Score():
            return "score(...)"
        case Text():
            return "text"


def describe(op: Op) -> str:
    """Give an operation with its options, on one line: `gen x max_tokens=4`."""
    return one_line(_words(op))


def one_line(text: str) -> str:
    """Give a text with spaces for its line breaks."""
    return " ".join(text.splitlines())


def _quoted(name: str | None) -> str:
    return "" if name is None else json.dumps(name, ensure_ascii=False)


def _words(op: Op) -> str:
    match op:
        case Text(text=text):
            return f"text {_short(text)}"
        case Value(source=source):
            return f"{source.capture or 'value'} of {source.node}"
        case Input(name=name):
            return f"input {name}"
        case RoleBegin(role=role):
            return f"{role} begin"
        case RoleEnd(role=role):
            return f"{role} end"
        case Score(text=text, source=source):
            return f"score {_short(text) if source is None else f'of {source}'}"
        case Select():
            return _select(op)
        case Gen():
            return _gen(op)


def _select(op: Select) -> str:
    shown = "" if op.method == "sum" else f" by {op.method}"
    names = ("top", "temperature", "abstain_below", "seed")
    options = _options(choices=op.choices, **{name: getattr(op, name) for name in names})
    return f"select {op.name or '(no name)'} {options}{shown}"


def _gen(op: Gen) -> str:
    sampling = {field.name: getattr(op.sampling, field.name) for field in fields(Sampling)}
    constraint = {} if op.constraint is None else _constraint(op.constraint)
    others = {"captures": op.captures or None, "seed": op.seed}
    options = _options(**sampling, **constraint, **others)
    return f"gen {op.name or '(no name)'} {options}".rstrip()


def _constraint(constraint: Constraint) -> dict[str, object]:
    schema = {} if constraint.schema is None else _schema(constraint.schema)
    grammar = {} if constraint.grammar is None else _grammar(constraint.grammar)
    return {"regex": constraint.regex, "choices": constraint.choices, **schema, **grammar}


def _schema(schema: JsonSchema) -> dict[str, object]:
    """Give a schema, its options but those at their defaults, and the URIs of its registry."""
    return {
        "schema": json.loads(schema.source),
        "strict": schema.strict or None,
        "whitespace": schema.whitespace or None,
        "order": None if schema.order == "listed" else schema.order,
        "registry": [document.uri for document in schema.registry] or None,
    }


def _grammar(grammar: GrammarText) -> dict[str, object]:
    """Give a grammar, and the names of its parts."""
    names = [part.name for part in grammar.parts]
    return {grammar.format: grammar.source, "parts": names or None}


def _options(**options: object) -> str:
    return " ".join(f"{k}={_short(v)}" for k, v in options.items() if v is not None)


def _short(value: object) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= _WIDTH else f"{shown[: _WIDTH - 4]}...{shown[-1]}"
