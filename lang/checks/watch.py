"""Trace a program as far as it goes, and note what its body reads and joins."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..forks import Forks
from ..graph import ForkKind, Graph, Where
from ..ops import Source
from ..program import Program
from ..state import State
from ..trace import trace
from ..tracing import Recording, Tracing
from ..where import caller


@dataclass(frozen=True, slots=True)
class JoinPlace:
    """A join: the nodes of the branches that it waits for, and the number of nodes before it."""

    nodes: tuple[int, ...]
    num_nodes: int
    where: Where | None


@dataclass(slots=True)
class Watched:
    """What came of a trace. `error` is what the body raised, where it went no further."""

    graph: Graph
    error: Exception | None = None
    reads: set[int] = field(default_factory=set)
    joins: list[JoinPlace] = field(default_factory=list)
    fork_places: dict[str, Where | None] = field(default_factory=dict)  # by the fork's path
    gives_states: bool = False  # the body returns branches, which its caller can read


class _Places(Recording):
    """A tape that keeps where forks are made."""

    def __init__(self) -> None:
        super().__init__()
        self.fork_places: dict[str, Where | None] = {}

    def fork(
        self,
        path: str,
        width: int,
        where: Where | None = None,
        *,
        kind: ForkKind = "fork",
        place: int = 0,
        is_concurrent: bool = False,
    ) -> None:
        """Record a fork and its place."""
        super().fork(path, width, where, kind=kind, place=place, is_concurrent=is_concurrent)
        self.fork_places[path] = where


class _Watching(Tracing):
    """A trace that keeps what the graph does not have: joins, and values that Python read."""

    def __init__(self) -> None:
        super().__init__()
        self._base = sys._getframe(1)  # that of `watch`: the author's frames are above it
        self.places = _Places()
        self.tape = self.places
        self.read_nodes: set[int] = set()
        self.joins: list[JoinPlace] = []
        self.gives_states = False

    def value(self, source: Source) -> object:
        """Give a stand-in, and note the node."""
        self.read_nodes.add(source.node)
        return super().value(source)

    def meta(self, node: int) -> object:
        """End the trace, and note the node."""
        self.read_nodes.add(node)
        return super().meta(node)

    def wait(self, nodes: Sequence[int]) -> None:
        """Note a join."""
        self.joins.append(JoinPlace(tuple(nodes), len(self.tape), caller()))
        super().wait(nodes)

    def take_result(self, result: object) -> None:
        """Note whether the body gives branches to its caller."""
        pending = [result]
        while pending and not self.gives_states:
            item = pending.pop()
            kind = type(item)  # not isinstance(): a stand-in answers that for its value
            self.gives_states = issubclass(kind, State | Forks)
            if issubclass(kind, list | tuple):
                pending += item  # type: ignore[arg-type]
        super().take_result(result)


def watch(program: Program, arguments: Mapping[str, object]) -> Watched:
    """Trace a program; what it raises ends the graph, and is kept."""
    tracing = _Watching()
    error: Exception | None = None
    try:
        graph = trace(program, arguments, tracing)
    except Exception as raised:
        error = raised
        inputs = tuple(name for name in program.required if name not in arguments)
        graph = tracing.graph(program.name, inputs)
    return Watched(
        graph,
        error,
        tracing.read_nodes,
        tracing.joins,
        tracing.places.fork_places,
        tracing.gives_states,
    )
