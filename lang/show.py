"""Graphs for people: one node a line, Mermaid, DOT."""

from __future__ import annotations

from collections.abc import Iterator

from .graph import Graph, Node
from .ops import Gen, Select
from .words import describe, one_line

# Mermaid writes a character as #code; and takes some of its own for markup.
_MERMAID = {ord(c): f"#{ord(c)};" for c in '#"<>&`'}


def to_text(graph: Graph) -> str:
    """Give one line a node: id, what it does, where; branches are indented under their fork.

    `<- 3` says that a node continues node 3 and not the one above it.
    """
    lines = [one_line(f"{graph.program}({', '.join(graph.inputs)})")]
    rows: list[tuple[str, str]] = []
    above: Node | None = None
    for node in graph.nodes:
        rows.append(_row(node, above))
        above = node
    width = max((len(row) for row, _ in rows), default=0)
    lines += [f"{row:{width}}  {where}".rstrip() for row, where in rows]
    for found in graph.breaks:
        place = "" if found.where is None else f"{found.where}: "
        name = f"{found.name}: " if found.name else ""
        lines.append(one_line(f"break at {place}{name}{found.reason}"))
    if not graph.is_complete:
        lines.append("incomplete: from a break on, a run may go another way")
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


def _row(node: Node, above: Node | None) -> tuple[str, str]:
    depth = node.branch.count("/") + 1 if node.branch else 0
    branch = f"[{node.branch}] " if node.branch else ""
    continues = "" if node.prev == (None if above is None else above.id) else f" <- {node.prev}"
    if node.prev is None and above is not None:
        continues = " <- start"
    row = f"{node.id:5}  {'  ' * depth}{branch}{describe(node.op)}{continues}"
    return row, "" if node.where is None else one_line(str(node.where))


def _edges(graph: Graph) -> Iterator[tuple[int, int, bool]]:
    for node in graph.nodes:
        if node.prev is not None:
            yield node.prev, node.id, False
        for read in node.reads:
            yield read, node.id, True


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
