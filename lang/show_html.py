"""Graphs and talks as HTML for notebooks: no script, no style sheet, nothing fetched.

Colours are the page's own, or see-through, so it reads on a light page and on a dark one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from html import escape
from itertools import groupby

from .errors import PlaitError
from .graph import Graph, Node
from .ops import Gen, Role, RoleBegin, RoleEnd, Select
from .words import describe, one_line, spell

MAX_ROWS = 500  # of a graph that are shown

# Notebooks set what stands between dollars as mathematics, unless a class says no.
_FRAME = '<div class="tex2jax_ignore mathjax_ignore" style="font-size:90%;color:inherit">'
_TURN = "border-left:3px solid rgba(128,128,128,.5);padding:2px 8px;margin:4px 0"
_TEXT = "white-space:pre-wrap;overflow-wrap:anywhere"
_WRITTEN = "background:rgba(64,160,255,.22);border-radius:3px"
_FAULT = "background:rgba(255,80,80,.25);border-radius:3px"
_CELL = "text-align:left;vertical-align:top;padding:1px 8px;background:none;color:inherit"


def graph_html(graph: Graph) -> str:
    """Give a table, one row a node; branches are indented under their fork.

    What a model writes is marked. `<- 3`: it continues node 3 and not the one above it.
    """
    title = one_line(f"{graph.program}({', '.join(graph.inputs)})")
    rows = [_row(node, above) for node, above in _with_above(graph.nodes[:MAX_ROWS])]
    notes = [f"... and {len(graph.nodes) - MAX_ROWS} more nodes"] if graph.nodes[MAX_ROWS:] else []
    for found in graph.breaks:
        place = "" if found.where is None else f"{found.where}: "
        notes.append(one_line(f"break at {place}{found.name}: {found.reason}"))
    if not graph.is_complete:
        notes.append("incomplete: from a break on, a run may go another way")
    table = f'<table style="border-collapse:collapse;color:inherit">{"".join(rows)}</table>'
    return f"{_FRAME}<b>{escape(title)}</b>{table}{''.join(map(_line, notes))}</div>"


def talk_html(title: str, nodes: Iterable[Node], text: Callable[[Node], str]) -> str:
    """Give the turns of a branch; what the model wrote is marked, and named on hovering.

    `text` gives what a node added; where it raises a PlaitError, the error is shown.
    """
    blocks: list[str] = []
    for (role, _), group in groupby(_in_turns(nodes), key=lambda item: item[0]):
        parts = "".join(_part(node, text) for _, node in group if not _is_border(node))
        label = "" if role is None else f'<div style="opacity:.65">{escape(role)}</div>'
        if role is not None or parts:
            blocks.append(f'<div style="{_TURN}">{label}<div style="{_TEXT}">{parts}</div></div>')
    return f"{_FRAME}<b>{escape(one_line(title))}</b>{''.join(blocks)}</div>"


def fault_html(error: BaseException) -> str:
    """Give a line for what a run ended with."""
    return _line(f"{type(error).__name__}: {error}", _FAULT)


def _in_turns(nodes: Iterable[Node]) -> Iterator[tuple[tuple[Role | None, int], Node]]:
    """Give each node with its turn: the role, None outside of turns, and an ordinal."""
    role: Role | None = None
    ordinal = 0
    for node in nodes:
        if isinstance(node.op, RoleBegin):
            role, ordinal = node.op.role, ordinal + 1
        yield (role, ordinal), node
        if isinstance(node.op, RoleEnd):
            role, ordinal = None, ordinal + 1


def _is_border(node: Node) -> bool:
    return isinstance(node.op, RoleBegin | RoleEnd)


def _part(node: Node, text: Callable[[Node], str]) -> str:
    try:
        shown = escape(text(node))
    except PlaitError as error:
        return f'<span style="{_FAULT}">{escape(f"{type(error).__name__}: {error}")}</span>'
    if not isinstance(node.op, Gen | Select):
        return shown
    return f'<span style="{_WRITTEN}" title="{escape(spell(node.op))}">{shown}</span>'


def _with_above(nodes: tuple[Node, ...]) -> Iterator[tuple[Node, Node | None]]:
    return zip(nodes, (None, *nodes), strict=False)


def _row(node: Node, above: Node | None) -> str:
    depth = node.branch.count("/") + 1 if node.branch else 0
    what = escape(describe(node.op))
    if isinstance(node.op, Gen | Select):
        what = f'<span style="{_WRITTEN}">{what}</span>'
    branch = f"[{escape(node.branch)}] " if node.branch else ""
    continues = ""
    if node.prev != (None if above is None else above.id):
        continues = escape(f" <- {'start' if node.prev is None else node.prev}")
    where = "" if node.where is None else escape(one_line(str(node.where)))
    indent = f"{_CELL};padding-left:{8 + 20 * depth}px;{_TEXT}"
    return (
        f'<tr style="background:none"><td style="{_CELL};opacity:.65">{node.id}</td>'
        f'<td style="{indent}">{branch}{what}{continues}</td>'
        f'<td style="{_CELL};opacity:.65">{where}</td></tr>'
    )


def _line(text: str, style: str = "opacity:.65") -> str:
    return f'<div style="{style};{_TEXT}">{escape(text)}</div>'
