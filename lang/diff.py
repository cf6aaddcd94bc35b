"""What differs between two versions of a graph, node by node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeAlias

from .graph import Graph, Node
from .ops import Gen, Select, Value
from .words import describe, one_line, spell

Key: TypeAlias = tuple[str, str]  # the kind of a node, and all that it does
_AROUND = 30  # characters shown on each side of where two long nodes differ


@dataclass(frozen=True, slots=True)
class Change:
    """A node that was removed (`new` is None), added (`old` is None), or does something else."""

    old: Node | None
    new: Node | None

    def __str__(self) -> str:
        if self.old is None or self.new is None:
            sign, node = ("+", self.new) if self.old is None else ("-", self.old)
            assert node is not None
            return _line(sign, node, describe(node.op))
        said = _said(self.old, self.new)
        return "\n".join(map(_line, "-+", (self.old, self.new), said))


@dataclass(frozen=True, slots=True)
class Diff:
    """All that differs. `notes` are about what is no node: inputs, forks, what continues what."""

    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Say whether anything differs."""
        return bool(self.changes or self.notes)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.changes), *self.notes])


def diff(old: Graph, new: Graph) -> Diff:
    """Compare two graphs branch by branch; names of programs and source lines do not count."""
    changes = [
        change
        for branch in dict.fromkeys(node.branch for node in (*old.nodes, *new.nodes))
        for change in _changes(old, new, branch)
    ]
    notes = [*_inputs(old, new), *_forks(old, new)]
    if not changes and not notes and old.digest() != new.digest():
        notes = list(_moved(old, new))
    return Diff(tuple(changes), tuple(notes))


def _changes(old: Graph, new: Graph, branch: str) -> Iterator[Change]:
    before = [node for node in old.nodes if node.branch == branch]
    after = [node for node in new.nodes if node.branch == branch]
    keys = [_key(old, node) for node in before], [_key(new, node) for node in after]
    matcher = SequenceMatcher(None, *keys, autojunk=False)
    for tag, low, high, new_low, new_high in matcher.get_opcodes():
        if tag != "equal":
            yield from _paired(before[low:high], after[new_low:new_high])


def _paired(before: Sequence[Node], after: Sequence[Node]) -> Iterator[Change]:
    """Pair what was there with what is there now, kind by kind."""
    rest = list(after)
    for node in before:
        twin = next((each for each in rest if type(each.op) is type(node.op)), None)
        if twin is not None:
            # What stands before its twin is new.
            place = rest.index(twin)
            for added in rest[:place]:
                yield Change(None, added)
            rest = rest[place + 1 :]
        yield Change(node, twin)
    for added in rest:
        yield Change(None, added)


def _key(graph: Graph, node: Node) -> Key:
    """Say what a node does in words that other nodes' ids have no part in."""
    kind = type(node.op).__name__
    if not isinstance(node.op, Value):
        return kind, repr(node.op)
    source = graph.nodes[node.op.source.node]
    assert isinstance(source.op, Gen | Select)
    name = source.op.name or f"number {_number(graph, source)}"
    return kind, repr((source.branch, name, node.op.source.capture))


def _number(graph: Graph, node: Node) -> int:
    """Give the place of a gen or select among those of its branch."""
    writers = (each for each in graph.nodes[: node.id] if isinstance(each.op, Gen | Select))
    return sum(each.branch == node.branch for each in writers)


def _inputs(old: Graph, new: Graph) -> Iterator[str]:
    for name in old.inputs:
        if name not in new.inputs:
            yield f"- input {name}"
    for name in new.inputs:
        if name not in old.inputs:
            yield f"+ input {name}"


def _forks(old: Graph, new: Graph) -> Iterator[str]:
    before = {fork.path: fork.width for fork in old.forks}
    after = {fork.path: fork.width for fork in new.forks}
    for path in sorted({*before, *after}):
        widths = before.get(path, 0), after.get(path, 0)
        if widths[0] != widths[1]:
            yield f"fork {path}: {widths[0]} branches became {widths[1]}"


def _moved(old: Graph, new: Graph) -> Iterator[str]:
    """Say which node does the same from another place; both have the same nodes a branch."""
    for before, after in zip(old.nodes, new.nodes, strict=True):
        if before.prev != after.prev:
            branch = after.branch or "the body"
            yield f"{branch}: {one_line(describe(after.op))} continues another node"
            return
    yield "the nodes are in another order"


def _said(old: Node, new: Node) -> tuple[str, str]:
    """Say what two nodes do; of what is too long to be shown, the part that differs."""
    said = describe(old.op), describe(new.op)
    if said[0] != said[1]:
        return said
    long = repr(old.op), repr(new.op)
    pairs = enumerate(zip(*long, strict=False))
    differs = next((i for i, (a, b) in pairs if a != b), min(map(len, long)))
    start = max(0, differs - _AROUND)
    cut = [f"{spell(old.op)} ...{text[start : differs + _AROUND]}..." for text in long]
    return cut[0], cut[1]


def _line(sign: str, node: Node, said: str) -> str:
    branch = f"[{node.branch}] " if node.branch else ""
    place = "" if node.where is None else f"  {node.where}"
    return one_line(f"{sign} {branch}{said}{place}")
