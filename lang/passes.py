"""Rewrites of graphs: each gives another graph that, run, gives the same.

A gen draws by its place: its branch, and the number of gens before it in that branch. No pass
changes either, or it writes the seed of the old place into the gen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TypeAlias

from .errors import InvalidArgument
from .graph import Fork, Graph, Node, variables_of
from .ops import Gen, Input, Op, RoleBegin, RoleEnd, Score, Select, Source, Text, Value

SeedOf: TypeAlias = Callable[[int, str, int], int]  # of a row, a branch, and a gen's number in it


def bind_inputs(graph: Graph, inputs: Mapping[str, str]) -> Graph:
    """Give the graph with texts for its inputs; those that are not in `inputs` stay open."""
    nodes = [
        replace(node, op=Text(inputs[node.op.name]))
        if isinstance(node.op, Input) and node.op.name in inputs
        else node
        for node in graph.nodes
    ]
    left = tuple(name for name in graph.inputs if name not in inputs)
    return replace(graph, nodes=tuple(nodes), inputs=left)


def merge_texts(graph: Graph) -> Graph:
    """Make one node of texts that follow each other in a branch, and drop empty ones.

    They are tokenised together in any case: it saves nodes, not tokens.
    """
    num_after = Counter(node.prev for node in graph.nodes)
    kept: list[Node] = []
    num_next: list[int] = []  # of each that is kept: how many continue it
    new_id: dict[int | None, int | None] = {None: None}
    for node in graph.nodes:
        prev = new_id[node.prev]
        if prev is not None and (joined := _joined(kept[prev], node, num_next[prev])):
            kept[prev] = joined
            num_next[prev] += num_after[node.id] - 1
            new_id[node.id] = prev
        else:
            new_id[node.id] = len(kept)
            kept.append(_moved(node, len(kept), new_id))
            num_next.append(num_after[node.id])
    return replace(graph, nodes=tuple(kept))


def drop_dead(graph: Graph) -> Graph:
    """Leave out what neither the body's text nor a variable of the result comes from.

    Those are the ends of branches that nothing reads. A result's `outputs()` lack them, and what
    would have failed in them does not.
    """
    needed = _needed(graph)
    kept: list[Node] = []
    new_id: dict[int | None, int | None] = {None: None}
    for node in graph.nodes:
        if node.id in needed:
            new_id[node.id] = len(kept)
            kept.append(_moved(node, len(kept), new_id))
    return replace(graph, nodes=tuple(kept))


def hoist_prefix(graphs: Sequence[Graph], seed_of: SeedOf) -> Graph:
    """Make one graph of a batch: what all begin with stands first, each is a branch after it.

    Variables of the body are lists by row in its result. `seed_of` gives the seed that a gen
    would have in its own graph.

    Raises: InvalidArgument if there is no graph, or if one has open inputs or is not complete.
    """
    _check_rows(graphs)
    rows = [_split_at(graph, _common(graphs)) for graph in graphs]
    num_shared = len(rows[0][0])
    nodes = list(rows[0][0])
    forks = [Fork("0", len(rows))]
    for row, (_, own) in enumerate(rows):
        num_draws: Counter[str] = Counter()
        first = len(nodes)
        for node in own:
            op = node.op
            place = _draws_at(node)
            if isinstance(op, Gen | Select) and place is not None:
                seed = seed_of(row, place, num_draws[place])
                num_draws[place] += 1
                op = op if op.seed is not None else replace(op, seed=seed)
            shift = first - num_shared
            nodes.append(_shifted(replace(node, op=op), shift, num_shared, f"0.{row}"))
        forks += [Fork(f"0.{row}/{fork.path}", fork.width) for fork in graphs[row].forks]
    return Graph(graphs[0].program, tuple(nodes), forks=tuple(forks))


def _joined(before: Node, node: Node, num_next: int) -> Node | None:
    """Give the node before with a text after its own; None if they stay apart.

    `num_next` nodes continue the one before: others may not get the text.
    """
    if not isinstance(node.op, Text) or node.branch != before.branch:
        return None
    if not node.op.text:
        return before
    if not isinstance(before.op, Text) or num_next != 1:
        return None
    return replace(before, op=Text(before.op.text + node.op.text))


def _moved(node: Node, id: int, new_id: Mapping[int | None, int | None]) -> Node:
    """Give a node its new id, and those of the nodes that its edges point to."""
    reads = tuple(read for old in node.reads if (read := new_id[old]) is not None)
    op = _pointing(node.op, lambda old: new_id[old])
    return replace(node, id=id, op=op, prev=new_id[node.prev], reads=reads)


def _pointing(op: Op, at: Callable[[int], int | None]) -> Op:
    """Give an operation with the node that it names where that node is now."""
    match op:
        case Value(source=source):
            node = at(source.node)
            assert node is not None
            return Value(Source(node, source.capture))
        case Score(source=int(old)):
            return replace(op, source=at(old))
        case _:
            return op


def _needed(graph: Graph) -> set[int]:
    """Give the nodes that a result's text and variables come from."""
    bodies = {
        "",
        *(f"{f.path}.{i}" for f in graph.forks if "/" not in f.path for i in range(f.width)),
    }
    setters = {(n.branch, name): n.id for n in graph.nodes for name in variables_of(n)}
    needed = {node.id for node in graph.nodes if node.branch == ""}
    needed |= {node for (branch, _), node in setters.items() if branch in bodies}
    while True:
        for node in reversed(graph.nodes):
            if node.id in needed:
                needed.update(node.reads, () if node.prev is None else (node.prev,))
        # What draws keeps its number in its branch: those before it stay.
        last = {_draws_at(node): node.id for node in graph.nodes if node.id in needed}
        draws = {
            node.id
            for node in graph.nodes
            if _draws_at(node) is not None and node.id < last.get(_draws_at(node), 0)
        }
        if draws <= needed:
            return needed
        needed |= draws


def _draws_at(node: Node) -> str | None:
    """Give what a seed follows from beside a number, None for a node that draws nothing."""
    if isinstance(node.op, Gen):
        return node.branch
    is_drawn = isinstance(node.op, Select) and bool(node.op.temperature)
    return f"{node.branch}:select" if is_drawn else None


def _check_rows(graphs: Sequence[Graph]) -> None:
    if not graphs:
        raise InvalidArgument("hoist_prefix([]): pass at least one graph")
    for row, graph in enumerate(graphs):
        is_open = any(isinstance(node.op, Input) for node in graph.nodes)
        if is_open or not graph.is_complete:
            fault = (
                "has open inputs: bind_inputs gives them texts" if is_open else "is not complete"
            )
            raise InvalidArgument(f"hoist_prefix: the graph of row {row} {fault}")


def _common(graphs: Sequence[Graph]) -> tuple[Op, ...]:
    """Give the operations that all graphs begin with, the last of them perhaps a part of a text."""
    chains = [_head(graph) for graph in graphs]
    ops: list[Op] = []
    for column in zip(*chains, strict=False):
        if all(op == column[0] for op in column):
            ops.append(column[0])
            continue
        texts = [op.text for op in column if isinstance(op, Text)]
        shared = _common_start(texts) if len(texts) == len(column) else ""
        return (*ops, Text(shared)) if shared else tuple(ops)
    return tuple(ops)


def _common_start(texts: Sequence[str]) -> str:
    low, high = min(texts), max(texts)  # all others lie between them
    places = (i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b)
    return low[: next(places, len(low))]


def _head(graph: Graph) -> list[Op]:
    """Give the operations of the body's start that no model and no other node has a part in."""

    def is_plain(node: Node) -> bool:
        follows = node.prev == (node.id - 1 if node.id else None)
        return follows and node.branch == "" and isinstance(node.op, Text | RoleBegin | RoleEnd)

    return [node.op for node in takewhile(is_plain, graph.nodes)]


def _split_at(graph: Graph, ops: tuple[Op, ...]) -> tuple[list[Node], list[Node]]:
    """Give the nodes of the common start, and the others; ids go on from one to the other.

    A text of which only the start is common becomes two nodes.
    """
    count = len(ops)
    if not count or graph.nodes[count - 1].op == ops[-1]:
        return list(graph.nodes[:count]), list(graph.nodes[count:])
    cut, part = graph.nodes[count - 1], ops[-1]
    assert isinstance(cut.op, Text)
    assert isinstance(part, Text)
    rest = replace(cut, id=count, op=Text(cut.op.text[len(part.text) :]), prev=cut.id)
    later = [_shifted(node, 1, count - 1) for node in graph.nodes[count:]]
    return [*graph.nodes[: count - 1], replace(cut, op=part)], [rest, *later]


def _shifted(node: Node, shift: int, num_fixed: int, branch: str = "") -> Node:
    """Move a node by `shift` places; edges to the first `num_fixed` nodes stay.

    `branch` is the branch that its graph becomes a part of.
    """

    def at(old: int) -> int:
        return old if old < num_fixed else old + shift

    op = _pointing(node.op, at)
    path = f"{branch}/{node.branch}" if branch and node.branch else branch or node.branch
    prev = None if node.prev is None else at(node.prev)
    return replace(
        node, id=node.id + shift, op=op, prev=prev, reads=tuple(map(at, node.reads)), branch=path
    )
