"""Graphs as versioned JSON, by the declared fields of their dataclasses.

    {"plait_graph": 5, "program": ..., "nodes": [{"id": 0, "op": {"kind": "text", ...}, ...}]}

A field at its default is left out. Whatever is unknown is refused, never skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from types import NoneType, UnionType
from typing import Literal, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from .check import check, is_branch_path
from .checked_ops import check_op
from .errors import GraphError, InvalidArgument
from .graph import Break, Fork, Graph, Node, Where
from .ops import (
    Constraint,
    Gen,
    GrammarPart,
    GrammarText,
    Input,
    JsonSchema,
    Op,
    RoleBegin,
    RoleEnd,
    Sampling,
    SchemaDocument,
    Score,
    Select,
    Source,
    Text,
    Value,
    reads_of,
)

# 2: the graph has its forks; 3: gens with a schema or a grammar; 4: one constraint a gen, with
# parts and a registry; captures, sources that name one, and heal; 5: scores, values without
# quotes, kept stop strings, and selects that draw, abstain or give several
VERSION = 5
MARK = "plait_graph"
KINDS: Mapping[str, type[Op]] = {
    "text": Text,
    "value": Value,
    "input": Input,
    "role_begin": RoleBegin,
    "role_end": RoleEnd,
    "gen": Gen,
    "select": Select,
    "score": Score,
}
_KIND_OF = {kind: name for name, kind in KINDS.items()}

_RECORDS = (
    *(Graph, Fork, Node, Where, Break, Sampling, JsonSchema, SchemaDocument),
    *(GrammarText, GrammarPart, Constraint, Source),
    *KINDS.values(),
)
FIELDS: Mapping[type, Mapping[str, Field[object]]] = {
    kind: {field.name: field for field in fields(kind) if "is_local" not in field.metadata}
    for kind in _RECORDS
}
HINTS: Mapping[type, Mapping[str, object]] = {kind: get_type_hints(kind) for kind in _RECORDS}

T = TypeVar("T")


def dumps(graph: Graph) -> str:
    """Give the graph as JSON."""
    return json.dumps({MARK: VERSION, **_record(graph)}, ensure_ascii=False)


def loads(text: str) -> Graph:
    """Read a graph back.

    Raises: GraphError that says where the JSON is not a graph, or which rule it breaks.
    """
    data = _parse(text)
    if not isinstance(data, dict) or MARK not in data:
        raise GraphError(f'this is not a graph: "{MARK}" is missing')
    version = data.pop(MARK)
    if version != VERSION or isinstance(version, bool):
        raise GraphError(
            f"the graph has version {version!r}, and this plait reads version {VERSION}; "
            "write it again with the plait that reads it"
        )
    try:
        graph = _read_record(Graph, data, "graph")
    except RecursionError as error:
        raise GraphError("the graph is nested too deeply") from error
    problems = check(graph)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise GraphError(f"the graph breaks a rule: {problems[0]}{more}")
    return graph


def nodes_to_data(nodes: Iterable[Node]) -> list[dict[str, object]]:
    """Give nodes as JSON types."""
    return [_record(node) for node in nodes]


def nodes_from_data(data: object) -> tuple[Node, ...]:
    """Read the nodes of a segment, whose edges may point to earlier segments.

    Raises: GraphError for a field, an edge or an option that has no meaning.
    """
    nodes = cast("tuple[Node, ...]", _read(tuple[Node, ...], data, "nodes"))
    last = -1
    for i, node in enumerate(nodes):
        edges = (*node.reads, *(() if node.prev is None else (node.prev,)))
        if node.id <= last:
            raise GraphError(f"nodes[{i}].id: {node.id} after {last}; ids grow")
        if not all(0 <= edge < node.id for edge in edges):
            raise GraphError(f"nodes[{i}]: an edge of node {node.id} points to {list(edges)}")
        if not is_branch_path(node.branch):
            raise GraphError(f'nodes[{i}].branch: {node.branch!r}; its form is "0.2/1.0"')
        _check_options(node, f"nodes[{i}].op")
        last = node.id
    return nodes


def _check_options(node: Node, at: str) -> None:
    try:
        check_op(node.op)
    except InvalidArgument as error:
        raise GraphError(f"{at}: {error}") from error
    if node.reads != reads_of(node.op):
        raise GraphError(f"{at}: it reads {list(node.reads)}, which its operation does not")


def _parse(text: str) -> object:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        return cast(object, json.loads(text, parse_constant=refuse))
    except (ValueError, RecursionError) as error:
        raise GraphError(f"this is not JSON: {error}") from error


# Writing


def _record(value: object) -> dict[str, object]:
    """Give a dataclass as a dict: its kind if it is an operation, and the fields set."""
    kind = type(value)
    record: dict[str, object] = {"kind": _KIND_OF[kind]} if kind in _KIND_OF else {}
    for name, field in FIELDS[kind].items():
        item: object = getattr(value, name)
        # The type counts as well: 0, 0.0 and False are equal.
        if type(item) is not type(field.default) or item != field.default:
            record[name] = _plain(item)
    return record


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[object, ...]", value)]
    return _record(value) if type(value) in FIELDS else value


# Reading


def _read(hint: object, value: object, at: str) -> object:
    """Give `value` as the declared type `hint` says; `at` is its path for messages."""
    if hint == Op:
        return _read_op(value, at)
    if isinstance(hint, type) and hint in FIELDS:
        return _read_record(hint, value, at)
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (inner,) = (option for option in options if option is not NoneType)
        return None if value is None else _read(inner, value, at)
    if origin is tuple:
        if not isinstance(value, list):
            raise _wrong(at, "a list", value)
        items = cast("list[object]", value)
        return tuple(_read(options[0], item, f"{at}[{i}]") for i, item in enumerate(items))
    if origin is Literal:
        if not isinstance(value, str) or value not in options:
            raise _wrong(at, f"one of {', '.join(options)}", value)
        return value
    return _read_scalar(hint, value, at)


def _read_scalar(hint: object, value: object, at: str) -> object:
    if hint is float and type(value) in (int, float):
        try:
            return float(cast(float, value))
        except OverflowError:
            raise GraphError(f"{at}: the number is past what a float can hold") from None
    if type(value) is not hint:
        raise _wrong(at, f"of type {getattr(hint, '__name__', hint)}", value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise GraphError(f"{at}: the text has a lone surrogate") from None
    return value


def _read_op(value: object, at: str) -> object:
    if not isinstance(value, dict):
        raise _wrong(at, "an object", value)
    rest = cast("dict[str, object]", value)
    kind = rest.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise _wrong(f"{at}.kind", f"one of {', '.join(KINDS)}", kind)
    return _read_record(KINDS[kind], {k: v for k, v in rest.items() if k != "kind"}, at)


def _read_record(kind: type[T], value: object, at: str) -> T:
    if not isinstance(value, dict):
        raise _wrong(at, "an object", value)
    given, declared = cast("dict[str, object]", value), FIELDS[kind]
    unknown = ", ".join(given.keys() - declared)
    if unknown:
        raise GraphError(f"{at}: unknown field {unknown}; known: {', '.join(declared)}")
    missing = [n for n, f in declared.items() if n not in given and f.default is MISSING]
    if missing:
        raise GraphError(f"{at}: missing field {', '.join(missing)}")
    hints = HINTS[kind]
    read = {name: _read(hints[name], item, f"{at}.{name}") for name, item in given.items()}
    try:
        return kind(**read)
    except InvalidArgument as error:
        raise GraphError(f"{at}: {error}") from error


def _wrong(at: str, expected: str, value: object) -> GraphError:
    shown = repr(value)
    return GraphError(f"{at}: expected {expected}, found {shown[:60]}")
