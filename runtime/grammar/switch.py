"""One of many literal texts, each with its own way on: read as one trie, not side by side."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Protocol

from .node import Node, Row
from .terminal import Group, LocalState, LocalStates


class Branches(Protocol):
    """Who knows how each branch goes on."""

    def branch(self, number: int) -> tuple[Row, ...]:
        """Give the alternatives behind a branch's text."""
        ...


class Switch:
    """The texts of `options`, none the beginning of another, each before its branch."""

    __slots__ = ("branches", "options", "start", "twin")

    def __init__(
        self, locals_: LocalStates, branches: Branches, options: tuple[tuple[bytes, int], ...]
    ) -> None:
        self.branches = branches
        self.options = sorted(options)
        self.start = SwitchState(locals_, self, 0, len(options), 0)
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give itself; its text is read by its states."""
        return ((self,),)


class SwitchState(LocalState):
    """A place in the trie of a switch: behind `depth` bytes of its options `low` to `high`."""

    __slots__ = ("_depth", "_high", "_low", "_switch")

    def __init__(self, owner: LocalStates, switch: Switch, low: int, high: int, depth: int) -> None:
        super().__init__(owner, "plain", is_greedy=False)
        self._switch = switch
        self._low, self._high, self._depth = low, high, depth
        first, last = switch.options[low][0], switch.options[high - 1][0]
        self.literal = first[depth : depth + _num_common(first, last, depth)]
        self.is_final = depth == len(first)

    def over(self, horizon: int) -> LocalState:
        """Give itself: no place in a switch looks like another."""
        return self

    def skip(self, count: int) -> LocalState:
        """Give the state behind the first `count` bytes that all options share."""
        return self._inside(self._low, self._high, self._depth + count)

    def rests(self, follow: Container[int]) -> Iterator[tuple[bytes, int]]:
        """Give the rest of each option's text behind `literal`, and its branch.

        `follow`: the bytes with which a rest may begin.
        """
        start = self._depth + len(self.literal)
        for text, number in self._switch.options[self._low : self._high]:
            if len(text) == start or text[start] in follow:
                yield text[start:], number

    def branch(self, number: int) -> tuple[Row, ...]:
        """Give what follows an option's text."""
        return self._switch.branches.branch(number)

    def rows(self) -> tuple[Row, ...]:
        """Give what follows, where the text is whole."""
        return self._switch.branches.branch(self._switch.options[self._low][1])

    @property
    def leads_on(self) -> bool:
        """True where some byte may follow that belongs to the terminal."""
        return not self.is_final

    @property
    def groups(self) -> tuple[Group, ...]:
        """What each byte leads to."""
        if self._groups is None:
            self._groups = () if self.is_final else tuple(self._split())
        return self._groups

    def _split(self) -> Iterator[Group]:
        if self.literal:
            yield (self.literal[0],), self.skip(1)
            return
        options, low = self._switch.options, self._low
        for place in range(low, self._high):
            byte = options[place][0][self._depth]
            if place + 1 == self._high or options[place + 1][0][self._depth] != byte:
                yield (byte,), self._inside(low, place + 1, self._depth + 1)
                low = place + 1

    def _inside(self, low: int, high: int, depth: int) -> SwitchState:
        return SwitchState(self._owner, self._switch, low, high, depth)


def _num_common(first: bytes, last: bytes, start: int) -> int:
    """Count the bytes that two texts share from `start` on; those between them share as many."""
    most = min(len(first), len(last))
    place = start
    while place < most and first[place] == last[place]:
        place += 1
    return place - start
