"""What must hold of a radix tree, checked from its roots. For tests and diagnosis."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InvariantError
from ..sequence import Int32
from .node import Node


def check_tree(roots: Mapping[str, Node], block_size: int, refs: Int32) -> list[Node]:
    """Give all nodes below the roots. Raises: InvariantError, naming the broken rule."""
    nodes: list[Node] = []
    pending = list(roots.values())
    while pending:
        node = pending.pop()
        _check_children(node, block_size)
        for child in node.children.values():
            _check_node(child, node, block_size)
        nodes.extend(node.children.values())
        pending.extend(node.children.values())
    blocks = [block for node in nodes for block in node.blocks.tolist()]
    _require(len(blocks) == len(set(blocks)), "a block is in the tree twice", blocks)
    _require(not blocks or int(refs[blocks].min()) >= 1, "the tree has a free block", blocks)
    return nodes


def _check_children(node: Node, block_size: int) -> None:
    keys = sorted(child.key(block_size) for child in node.children.values())
    _require(keys == node.keys == sorted(node.children), "keys differ from children", node)
    _require(not (node.is_tail and node.children), "a tail has children", node)
    locks = sum(child.lock_count for child in node.children.values())
    is_root = node.parent is None
    _require(is_root or node.lock_count >= locks, "fewer locks than below", node)


def _check_node(child: Node, parent: Node, block_size: int) -> None:
    _require(child.parent is parent, "wrong parent", child)
    _require(not child.is_dead, "a dead node in the tree", child)
    is_inner = parent.parent is not None
    _require(not is_inner or child.stamp <= parent.stamp, "used later than its parent", child)
    _require(not child.is_written or parent.is_written, "written below planned", child)
    if child.is_tail:
        _require(len(child.blocks) == 1, "a tail is one block", child)
        _require(0 < len(child.tokens) < block_size, "a tail is less than a block", child)
    else:
        _require(len(child.tokens) == len(child.blocks) * block_size > 0, "not whole", child)
    if not child.children and child.lock_count == 0:
        _require(child.is_queued, "an evictable leaf is not queued", child)


def _require(holds: bool, rule: str, what: object) -> None:
    if not holds:
        raise InvariantError(f"{rule}: {what}")
