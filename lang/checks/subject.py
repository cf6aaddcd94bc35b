"""A program under check: its graph, its source, what its body read, and the model's facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..graph import Graph, Node, Where
from ..ops import Gen, Select
from ..program import Program
from .source import ProgramSource, source_of
from .watch import Watched, watch

ABOUT_CHARS = 4  # of English text, to a token; where no tokenizer is at hand


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a check needs to know of the model that shall run a program."""

    name: str
    max_context: int  # tokens
    has_chat_template: bool
    num_tokens: Callable[[str], int] | None = None  # None: no tokenizer is at hand


@dataclass(frozen=True)
class Subject:
    """All that rules look at. `source` is None where Python has no source of the program."""

    program: Program
    source: ProgramSource | None
    watched: Watched
    model: ModelFacts | None = None
    arguments: Mapping[str, object] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        """Give what the trace recorded, as far as it came."""
        return self.watched.graph

    @property
    def is_whole(self) -> bool:
        """Say whether nothing can follow what the graph has."""
        return self.graph.is_complete and self.watched.error is None

    @cached_property
    def read(self) -> frozenset[int]:
        """Give the nodes whose values the body, or another node, reads."""
        by_nodes = (source for node in self.graph.nodes for source in node.reads)
        return frozenset([*by_nodes, *self.watched.reads])

    @cached_property
    def used(self) -> frozenset[int]:
        """Give the nodes that are read, and those whose text leads on to such a node."""
        found = set(self.read)
        for node in reversed(self.graph.nodes):
            if node.id in found and node.prev is not None:
                found.add(node.prev)
        return frozenset(found)

    @cached_property
    def writers(self) -> tuple[Node, ...]:
        """Give the gens and selects."""
        return tuple(node for node in self.graph.nodes if isinstance(node.op, Gen | Select))

    def start(self) -> Where | None:
        """Give the line of the program's `def`."""
        return None if self.source is None else self.source.where(self.source.tree)

    def num_tokens(self, text: str) -> int:
        """Count a text's tokens; without a tokenizer about as many as English text has."""
        if self.model is None or self.model.num_tokens is None:
            return -(-len(text) // ABOUT_CHARS)
        return self.model.num_tokens(text)

    @property
    def about(self) -> str:
        """Give the word before a count of tokens: "about " if they were not counted."""
        return "" if self.model is not None and self.model.num_tokens is not None else "about "


def subject_of(
    program: Program, arguments: Mapping[str, object], model: ModelFacts | None = None
) -> Subject:
    """Trace a program and read its source; arguments left out stay open."""
    return Subject(program, source_of(program), watch(program, arguments), model, arguments)
