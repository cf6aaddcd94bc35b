"""Graphs for people: one node a line, Mermaid, DOT."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields

from .graph import Graph, Node
from .ops import Gen, Input, Op, RoleBegin, RoleEnd, Sampling, Select, Text, Value

_WIDTH = 48  # characters of a text that are shown
# Mermaid writes a character as #code; and takes some of its own for markup.
_MERMAID = {ord(c): f"#{ord(c)};" for c in '#"<>&`'}


def to_text(graph: Graph) -> str:
    """Give one line a node: id, what it does, where; branches are indented under their fork.

    `<- 3` says that a node continues node 3 and not the one above it.
    """
    lines = [_line(f"{graph.program}({', '.join(graph.inputs)})")]
    rows = [_row(node, above) for node, above in zip(graph.nodes, (None, *graph.nodes))]  # noqa: B905
    width = max((len(row) for row, _ in rows), default=0)
    lines += [f"{row:{width}}  {where}".rstrip() for row, where in rows]
    for found in graph.breaks:
        place = "" if found.where is None else f"{found.where}: "
        name = f"{found.name}: " if found.name else ""
        lines.append(_line(f"break at {place}{name}{found.reason}"))
    if not graph.is_complete:
        lines.append("incomplete: the rest depends on the value at the last break")
    return "\n".join(lines)


def to_mermaid(graph: Graph) -> str:
    """Give a Mermaid flowchart: solid edges continue text, dotted ones carry values."""
    lines = ["flowchart TD"]
    for node in graph.nodes:
        left, right = ("([", "])") if isinstance(node.op, Gen | Select) else ("[", "]")
        lines.append(f'  n{node.id}{left}"{describe(node.op).translate(_MERMAID)}"{right}')
    lines += [f"  n{a} {'-.->' if is_value else '-->'} n{b}" for a, b, is_value in _edges(graph)]
    return "\n".join(lines)


def to_dot(graph: Graph) -> str:
    """Give a Graphviz digraph: solid edges continue text, dashed ones carry values."""
    lines = [f"digraph {_quoted(graph.program)} {{", "  node [shape=box];"]
    for node in graph.nodes:
        shape = ", shape=ellipse" if isinstance(node.op, Gen | Select) else ""
        lines.append(f"  n{node.id} [label={_quoted(describe(node.op))}{shape}];")
    for a, b, is_value in _edges(graph):
        lines.append(f"  n{a} -> n{b}{' [style=dashed]' if is_value else ''};")
    return "\n".join([*lines, "}"])


def describe(op: Op) -> str:
    """Give an operation in a few words, on one line."""
    return _line(_words(op))


def _words(op: Op) -> str:
    match op:
        case Text(text=text):
            return f"text {_short(text)}"
        case Value(source=source):
            return f"value of {source}"
        case Input(name=name):
            return f"input {name}"
        case RoleBegin(role=role):
            return f"{role} begin"
        case RoleEnd(role=role):
            return f"{role} end"
        case Select(name=name, choices=choices, method=method):
            shown = "" if method == "sum" else f" by {method}"
            return f"select {name or '(no name)'} {_options(choices=choices)}{shown}"
        case Gen():
            return _gen(op)


def _gen(op: Gen) -> str:
    sampling = {field.name: getattr(op.sampling, field.name) for field in fields(Sampling)}
    options = _options(**sampling, regex=op.regex, choices=op.choices, seed=op.seed)
    return f"gen {op.name or '(no name)'} {options}".rstrip()


def _options(**options: object) -> str:
    return " ".join(f"{k}={_short(v)}" for k, v in options.items() if v is not None)


def _short(value: object) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= _WIDTH else f"{shown[: _WIDTH - 4]}...{shown[-1]}"


def _line(text: str) -> str:
    return " ".join(text.splitlines())


def _row(node: Node, above: Node | None) -> tuple[str, str]:
    depth = node.branch.count("/") + 1 if node.branch else 0
    branch = f"[{node.branch}] " if node.branch else ""
    continues = "" if node.prev == (None if above is None else above.id) else f" <- {node.prev}"
    if node.prev is None and above is not None:
        continues = " <- start"
    row = f"{node.id:5}  {'  ' * depth}{branch}{describe(node.op)}{continues}"
    return row, "" if node.where is None else _line(str(node.where))


def _edges(graph: Graph) -> Iterator[tuple[int, int, bool]]:
    for node in graph.nodes:
        if node.prev is not None:
            yield node.prev, node.id, False
        for read in node.reads:
            yield read, node.id, True


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
