"""The JSON Schema of graphs as JSON, made of the declared fields of their dataclasses."""

from __future__ import annotations

from dataclasses import MISSING
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

from .graph import Graph
from .ops import Op
from .serialize import FIELDS, HINTS, KINDS, MARK, VERSION

_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}
_KIND_OF = {kind: name for name, kind in KINDS.items()}


def graph_schema() -> dict[str, object]:
    """Give the schema that every graph's JSON matches: what `loads` reads by its form.

    Edges, turns and options are checked by `loads` alone: they are rules, not forms.
    """
    mark: dict[str, object] = {"const": VERSION, "description": "The version of this form."}
    schema = _record(Graph, {MARK: mark})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A graph of plait, version {VERSION}",
        **schema,
        "$defs": {
            "Op": {"oneOf": [_ref(kind) for kind in KINDS.values()]},
            **{kind.__name__: _record(kind) for kind in FIELDS if kind is not Graph},
        },
    }


def _record(kind: type, first: dict[str, object] | None = None) -> dict[str, object]:
    """Give the schema of a dataclass; `first` are properties that come before its fields."""
    properties = dict(first or {})
    if kind in _KIND_OF:
        properties["kind"] = {"const": _KIND_OF[kind]}
    required = list(properties)
    for name, field in FIELDS[kind].items():
        properties[name] = _schema(HINTS[kind][name])
        if field.default is MISSING:
            required.append(name)
    return {
        "description": (kind.__doc__ or "").strip().splitlines()[0],
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _schema(hint: object) -> dict[str, object]:
    """Give the schema of a field's type."""
    if hint == Op:
        return {"$ref": "#/$defs/Op"}
    if isinstance(hint, type) and hint in FIELDS:
        return _ref(hint)
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        inner = [_schema(option) for option in options if option is not NoneType]
        return {"anyOf": [*inner, {"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": _schema(options[0])}
    if origin is Literal:
        return {"enum": list(options)}
    assert isinstance(hint, type)
    return {"type": _SCALARS[hint]}


def _ref(kind: type) -> dict[str, object]:
    return {"$ref": f"#/$defs/{kind.__name__}"}
