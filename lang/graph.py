"""The graph of a program: nodes, two kinds of edge, nothing hidden."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .ops import Gen, Op, Select, Source


@dataclass(frozen=True, slots=True)
class Where:
    """A source line: the file as Python names it, which messages shorten to its last part."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


@dataclass(frozen=True, slots=True)
class Node:
    """One operation in its place.

    `prev` is the node whose text this one continues (None: the start of the text),
    `reads` the nodes whose values it uses. `branch` is the branch's path: "" for the
    body itself, "0.2" for branch 2 of its fork 0, "0.2/1.0" one level deeper. Ids grow
    in the order of recording, so every edge points to a smaller id.
    """

    id: int
    op: Op
    prev: int | None
    reads: tuple[int, ...] = ()
    branch: str = ""
    where: Where | None = None


def variables_of(node: Node) -> dict[str, Source]:
    """Give the variables that a node sets."""
    found: dict[str, Source] = {}
    if isinstance(node.op, Gen | Select) and node.op.name is not None:
        found[node.op.name] = Source(node.id)
    if isinstance(node.op, Gen):
        found.update({name: Source(node.id, name) for name in node.op.captures})
    return found


ForkKind: TypeAlias = Literal["fork", "call", "retry"]


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork and its number of branches, which the nodes alone do not tell.

    `path` is the fork's: "1" for fork 1 of the body, "0.2/1" for fork 1 of branch "0.2".
    Its branches are "1.0", "1.1" and so on, also those that record nothing. A "call"
    has the text of a nested program as its one branch, whose variables are its own; a "retry"
    has the next attempt of the branch that it is in, which begins where that one began.
    """

    path: str
    width: int
    kind: ForkKind = "fork"


@dataclass(frozen=True, slots=True)
class Break:
    """A place where Python needs a value: run submits what it has there, and waits."""

    where: Where | None
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Prefix:
    """A step of the tree of prefixes: `nodes` follow the same text and add the same.

    `parent` is an index into the tree, None at the start of the text.
    """

    parent: int | None
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Graph:
    """A traced program, or a recorded run.

    `is_complete` is False where the trace had to stop at a break, and where Python may have
    read text that the trace could not follow: a run may go another way from there on.
    """

    program: str
    nodes: tuple[Node, ...]
    breaks: tuple[Break, ...] = ()
    is_complete: bool = True
    inputs: tuple[str, ...] = field(default=())
    forks: tuple[Fork, ...] = ()

    def __repr__(self) -> str:
        """Say in one line what it is; `lang.show` draws it."""
        size = f"{len(self.nodes)} nodes, {len(self.prefix_tree())} distinct prefixes"
        state = "" if self.is_complete else ", not complete"
        return f"<Graph of {self.program}: {size}{state}, {self.digest()[:12]}>"

    def _repr_html_(self) -> str:
        """Show itself in a notebook."""
        from .show_html import graph_html

        return graph_html(self)

    def prefix_tree(self) -> tuple[Prefix, ...]:
        """Give the tree of distinct prefixes, parents before children.

        It is the tree that the cache will hold: nodes that add the same text to the same
        prefix are one step. What a model writes is never assumed to be the same twice.
        """
        steps: dict[tuple[int | None, Op], int] = {}
        parents: list[int | None] = []
        members: list[list[int]] = []
        step_of: dict[int | None, int | None] = {None: None}
        for node in self.nodes:
            parent = step_of[node.prev]
            at = new = len(members)
            if not isinstance(node.op, Gen | Select):
                at = steps.setdefault((parent, node.op), new)
            if at == new:
                parents.append(parent)
                members.append([])
            members[at].append(node.id)
            step_of[node.id] = at
        return tuple(Prefix(p, tuple(m)) for p, m in zip(parents, members, strict=True))

    def digest(self) -> str:
        """Give a SHA-256 of what the graph does; its name and its source lines do not count."""
        digest = hashlib.sha256()
        for node in self.nodes:
            # A dataclass's repr is its declared fields, so no difference is left out.
            digest.update(f"{(node.id, node.op, node.prev, node.reads, node.branch)!r}\n".encode())
        for fork in sorted(self.forks, key=lambda fork: fork.path):
            digest.update(f"{fork!r}\n".encode())
        return digest.hexdigest()
