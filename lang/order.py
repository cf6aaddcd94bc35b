"""The order of a program's nodes, whatever the order in which its branches ran."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace

from .graph import Fork, Node
from .ops import Source, Value


def in_order(
    nodes: Sequence[Node], forks: Sequence[Fork], places: Mapping[str, int]
) -> tuple[tuple[Node, ...], tuple[Fork, ...]]:
    """Give nodes and forks as if each branch had run to its end where it was forked.

    `places` has for each fork the number of nodes that its own branch had then. A node that reads
    one of a branch after it comes later, so ids grow along every edge; they are given anew.
    """
    order = by_place(nodes, places)
    new_id = {node.id: new for new, node in enumerate(order)}
    renumbered = tuple(_renumbered(node, new_id) for node in order)
    return renumbered, tuple(sorted(forks, key=lambda fork: _key(fork.path, places)))


def by_place(nodes: Sequence[Node], places: Mapping[str, int]) -> list[Node]:
    """Give the nodes in that order, with the ids that they have."""
    by_id = {node.id: node for node in nodes}
    return [by_id[node_id] for node_id in _topological(nodes, _ranks(nodes, places))]


def _ranks(nodes: Sequence[Node], places: Mapping[str, int]) -> dict[int, tuple[int, ...]]:
    keys: dict[str, tuple[int, ...]] = {}
    num_nodes: dict[str, int] = {}
    ranks: dict[int, tuple[int, ...]] = {}
    for node in nodes:
        if node.branch not in keys:
            keys[node.branch] = _key(node.branch, places)
        ordinal = num_nodes.get(node.branch, 0)
        num_nodes[node.branch] = ordinal + 1
        ranks[node.id] = (*keys[node.branch], ordinal, 1)
    return ranks


def _key(path: str, places: Mapping[str, int]) -> tuple[int, ...]:
    """Give where a branch or a fork stands: before the node that followed its fork."""
    key: list[int] = []
    fork = ""
    for step in path.split("/") if path else ():
        number, _, index = step.partition(".")
        fork = f"{fork}/{number}" if fork else number
        key += [places.get(fork, 0), 0, int(number), *([int(index)] if index else [])]
        fork += f".{index}" if index else ""
    return tuple(key)


def _topological(nodes: Sequence[Node], rank: Mapping[int, tuple[int, ...]]) -> list[int]:
    num_missing: dict[int, int] = {}
    followers: dict[int, list[int]] = {}
    for node in nodes:
        sources = {*node.reads, *(() if node.prev is None else (node.prev,))}
        num_missing[node.id] = len(sources)
        for source in sources:
            followers.setdefault(source, []).append(node.id)
    ready = [(rank[node], node) for node, missing in num_missing.items() if not missing]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, node_id = heapq.heappop(ready)
        order.append(node_id)
        for follower in followers.get(node_id, ()):
            num_missing[follower] -= 1
            if not num_missing[follower]:
                heapq.heappush(ready, (rank[follower], follower))
    return order


def _renumbered(node: Node, new_id: Mapping[int, int]) -> Node:
    op = node.op
    if isinstance(op, Value):
        op = Value(Source(new_id[op.source.node], op.source.capture))
    prev = None if node.prev is None else new_id[node.prev]
    return replace(
        node, id=new_id[node.id], op=op, prev=prev, reads=tuple(new_id[read] for read in node.reads)
    )
