"""Where a text stands in a whole grammar: local states, each over what remains after it.

The way back is a chain of cells, shared as far as it is common, so a nested value costs
one cell and a grammar is never unrolled.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .node import Node
from .spec import Bitmask
from .terminal import LocalState

if TYPE_CHECKING:
    from .forced import Ahead

Guards: TypeAlias = frozenset[LocalState]
NO_GUARDS: Guards = frozenset()


class Cell:
    """A node still to come, and the rest after it. Made by `Pushdown`: equal ones are one."""

    __slots__ = ("closure", "near", "node", "rest", "twin")

    def __init__(self, node: Node, rest: Cell | None) -> None:
        self.node = node
        self.rest = rest
        self.closure: State | None = None
        self.twin: Cell = self
        self.near: dict[int, Cell] = {}  # by how much is left of the stacks in it


class Config(NamedTuple):
    """One way to read the text so far: inside a terminal, before the rest.

    `guards`: languages of which the text from here on may have no beginning.
    """

    local: LocalState
    rest: Cell | None
    guards: Guards = NO_GUARDS


class State:
    """All ways to read the text so far. Made by `Pushdown`: equal ones are one object."""

    __slots__ = (
        "_chain", "_first", "ahead", "configs", "edges", "is_accepting", "mask", "tokens",
        "too_near", "twin",
    )  # fmt: skip

    def __init__(self, configs: frozenset[Config], is_accepting: bool) -> None:
        self.configs = configs
        self.is_accepting = is_accepting
        self.edges: dict[int, State | None] = {}
        self.tokens: dict[int, State | None] = {}
        self.mask: Bitmask | None = None
        self.too_near = 0  # so much of a parser's stack is not enough for its mask
        self.ahead: Ahead | None = None
        self.twin: State | None = None
        self._first: AbstractSet[int] | None = None
        self._chain: bytes | None = None

    @property
    def first(self) -> AbstractSet[int]:
        """The bytes that may follow, but for those that a guard forbids."""
        if self._first is None:
            firsts = [config.local.first for config in self.configs]
            self._first = firsts[0] if len(firsts) == 1 else frozenset().union(*firsts)
        return self._first

    @property
    def chain(self) -> bytes:
        """Bytes that are known to come next; not all of them if b"" or if more would be."""
        if self._chain is None:
            chain = b""
            if len(self.configs) == 1 and not self.is_accepting:
                ((local, _, guards),) = self.configs
                chain = b"" if guards else local.literal
            self._chain = chain
        return self._chain

    @property
    def is_whole(self) -> bool:
        """True where the text may end and nothing can follow."""
        return self.is_accepting and not self.configs
