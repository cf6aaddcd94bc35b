"""What one step computes, and what it needs for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .cache.match import Match
from .cache.node import Node
from .sequence import Int32, Sequence


class Chunk(NamedTuple):  # one a sequence and step: a dataclass takes three times as long
    """Tokens `start` to `end` of a sequence, to be computed in this step.

    The `draft` comes behind them: guesses of what follows the sequence's last token. Their K
    and V count only once they turned out to be right.
    """

    sequence: Sequence
    start: int
    end: int
    draft: tuple[int, ...] = ()

    @property
    def num_rows(self) -> int:
        """Tokens that go through the model."""
        return self.end - self.start + len(self.draft)


@dataclass(frozen=True, slots=True)
class Fit:
    """A chunk for which there are blocks, and what the cache has of it."""

    start: int
    end: int
    match: Match | None


@dataclass(slots=True)
class Plan:
    """One step. `copies` maps a slot to the slot whose K and V it gets.

    `duplicates` are sequences that compute what the cache has already in these blocks.
    """

    budget: int
    chunks: list[Chunk] = field(default_factory=list)
    copies: dict[int, int] = field(default_factory=dict)
    pins: list[Node] = field(default_factory=list)  # sources of copies, locked
    duplicates: list[tuple[Sequence, Int32]] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)
    stuck: Sequence | None = None  # fills the pool alone and cannot grow

    def copy(self, source: int, target: int) -> None:
        """Let a slot get the K and V of another.

        A source that is itself a copy of this step is replaced by what it is copied from.
        """
        self.copies[target] = self.copies.get(source, source)

    def victim(self, running: list[Sequence], sequence: Sequence) -> Sequence | None:
        """Find the newest of `running` that came after `sequence` and is not in this step."""
        scheduled = {id(chunk.sequence) for chunk in self.chunks}
        for other in reversed(running):
            if other is sequence:
                return None
            if id(other) not in scheduled:
                return other
        return None
