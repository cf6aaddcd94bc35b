"""What grammars are made of above the regular parts: terminals, and what stands in a row.

A node says only how it can begin: `expand` gives the alternatives, each a row of nodes. It
is asked when a text gets there, so a node may stand for a rule, a counter or a whole state
of an object, and recursion costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar, cast

from .terminal import LocalState

Row: TypeAlias = "tuple[Node, ...]"
N = TypeVar("N", bound="Node")


class Node(Protocol):
    """A part of a grammar. Made through `Nodes`, so that equal ones are one object."""

    def __hash__(self) -> int: ...

    @property
    def twin(self) -> Node:
        """A node that looks the same for a whole token; itself if there is none."""
        ...

    def expand(self) -> tuple[Row, ...]:
        """Give the alternatives. None of them may begin with the node itself."""
        ...


class TooNear(Exception):
    """What comes next depends on more of a stack than is left of it; see `Stacked`."""


class Lexicon:
    """The terminals that a lexer tries, by name, each with what it may not begin with.

    No name: text that is ignored.
    """

    __slots__ = ("terminals",)

    def __init__(self, terminals: Iterable[tuple[str | None, Terminal]]) -> None:
        self.terminals = tuple((name, (t.start, frozenset(t.unless))) for name, t in terminals)


class Stacked:
    """A node that stands on a parser's stack, whose top mostly decides what comes next."""

    __slots__ = ()

    @property
    def lexicon(self) -> Lexicon | None:
        """The terminals that the lexer tries; the parser may not take all of them.

        None where other nodes may come as well.
        """
        raise NotImplementedError

    @property
    def may_end(self) -> bool:
        """True where the text may end."""
        raise NotImplementedError

    def near(self, depth: int) -> Node:
        """Give the node with only the top of its stack, whose methods may raise TooNear."""
        raise NotImplementedError

    def follow(self, names: frozenset[str], depth: int) -> Mapping[str, Node]:
        """Give the node behind each of some terminals that may come; see `near`."""
        raise NotImplementedError


class Terminal:
    """Text of a regular language. It has no alternatives: the text is read by its state.

    `unless`: the text may not begin with one of these (terminals that a lexer would prefer).
    """

    __slots__ = ("start", "twin", "unless")

    def __init__(self, start: LocalState, unless: tuple[LocalState, ...] = ()) -> None:
        self.start = start
        self.unless = unless
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give itself; a terminal is not taken apart."""
        return ((self,),)


class Sequence:
    """Some nodes in a row; none of them is the empty text."""

    __slots__ = ("parts", "twin")

    def __init__(self, *parts: Node) -> None:
        self.parts = parts
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give the row."""
        return (self.parts,)


class Choice:
    """One of some nodes."""

    __slots__ = ("options", "twin")

    def __init__(self, *options: Node) -> None:
        self.options = options
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give each option as a row of one."""
        return tuple((option,) for option in self.options)


class Times:
    """`low` to `high` times the item; the count is a number, not copies."""

    __slots__ = ("_nodes", "high", "item", "low")

    def __init__(self, nodes: Nodes, item: Node, low: int, high: int | None) -> None:
        self._nodes = nodes
        self.item, self.low, self.high = item, low, high

    @property
    def twin(self) -> Node:
        """Counters further from their ends than a token is long look alike."""
        most = self._nodes.horizon
        low = min(self.low, most)
        high = None if self.high is not None and self.high > most else self.high
        item = self.item.twin
        if item is self.item and (low, high) == (self.low, self.high):
            return self
        return self._nodes.times(item, low, high)

    def expand(self) -> tuple[Row, ...]:
        """Give one time more, and none where there were enough."""
        if self.high == 0:
            return ((),)
        high = None if self.high is None else self.high - 1
        once_more: Row = (self.item, self._nodes.times(self.item, max(self.low - 1, 0), high))
        return (once_more,) if self.low else (once_more, ())


class Rule:
    """A named part, which may hold itself; `body` is set once it is known."""

    __slots__ = ("body", "name", "twin")

    def __init__(self, name: str) -> None:
        self.name = name
        self.body: Node | None = None
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give the body."""
        assert self.body is not None, self.name
        return ((self.body,),)


@dataclass(frozen=True, slots=True)
class PartNode:
    """A grammar inside another: its name there, its node, and whether its text may be empty."""

    name: str
    node: Node
    is_nullable: bool


class Nodes:
    """Makes nodes, each once. Not thread-safe. `horizon`: bytes of the longest token."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon
        self._made: dict[Hashable, object] = {}

    def __len__(self) -> int:
        return len(self._made)

    def make(self, kind: Callable[..., N], *args: Hashable) -> N:
        """Give the node of a kind for `args`; a new one only the first time."""
        key = (kind, args)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = kind(*args)
        return cast("N", found)

    def terminal(self, start: LocalState, unless: tuple[LocalState, ...] = ()) -> Node:
        """Text read from `start` on."""
        return self.make(Terminal, start, unless)

    def sequence(self, *parts: Node) -> Node:
        """The parts in a row."""
        return parts[0] if len(parts) == 1 else self.make(Sequence, *parts)

    def choice(self, *options: Node) -> Node:
        """One of the options."""
        return options[0] if len(options) == 1 else self.make(Choice, *options)

    def times(self, item: Node, low: int, high: int | None) -> Node:
        """`low` to `high` times the item, without end if `high` is None."""
        key = (Times, item, low, high)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Times(self, item, low, high)
        return cast("Times", found)
