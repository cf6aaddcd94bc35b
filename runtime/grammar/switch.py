"""One of many literal texts, each with its own way on: read as one trie, not side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from .node import Node, Row
from .terminal import Group, LocalState, LocalStates

Options: TypeAlias = Sequence[tuple[bytes, int]]  # what is left to read, and the branch's number


class Branches(Protocol):
    """Who knows how each branch goes on."""

    def branch(self, number: int) -> tuple[Row, ...]:
        """Give the alternatives behind a branch's text."""
        ...


class Switch:
    """The texts of `options`, none the beginning of another, each before its branch."""

    __slots__ = ("branches", "start", "twin")

    def __init__(
        self, locals_: LocalStates, branches: Branches, options: tuple[tuple[bytes, int], ...]
    ) -> None:
        self.branches = branches
        self.start = SwitchState(locals_, self, options)
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give itself; its text is read by its states."""
        return ((self,),)


class SwitchState(LocalState):
    """A place in the trie of a switch."""

    __slots__ = ("_options", "_switch")

    def __init__(self, owner: LocalStates, switch: Switch, options: Options) -> None:
        super().__init__(owner, "plain", is_greedy=False)
        self._switch = switch
        self._options = options
        self.is_final = len(options) == 1 and not options[0][0]

    def over(self, horizon: int) -> LocalState:
        """Give itself: no place in a switch looks like another."""
        return self

    def rows(self) -> tuple[Row, ...]:
        """Give what follows, where the text is whole."""
        return self._switch.branches.branch(self._options[0][1])

    @property
    def groups(self) -> tuple[Group, ...]:
        """What each byte leads to."""
        if self._groups is None:
            found: dict[int, list[tuple[bytes, int]]] = {}
            for text, number in () if self.is_final else self._options:
                found.setdefault(text[0], []).append((text[1:], number))
            self._groups = tuple(
                ((byte,), SwitchState(self._owner, self._switch, options))
                for byte, options in found.items()
            )
        return self._groups
