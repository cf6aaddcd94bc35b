"""The graph of a program: nodes, two kinds of edge, nothing hidden."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from .ops import Op


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


@dataclass(frozen=True, slots=True)
class Break:
    """A place where Python needs a value: run submits what it has there, and waits."""

    where: Where | None
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A traced program. `is_complete` is False where the trace had to stop at a break."""

    program: str
    nodes: tuple[Node, ...]
    breaks: tuple[Break, ...] = ()
    is_complete: bool = True
    inputs: tuple[str, ...] = field(default=())
