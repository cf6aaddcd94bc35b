"""A terminal whose text is remembered, for what follows to depend on it."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping
from typing import Protocol

from .node import Row
from .terminal import Group, LocalState, LocalStates


class Named(Protocol):
    """A node behind a kept terminal, which is told the text."""

    def named(self, text: bytes) -> tuple[Row, ...]:
        """Give the alternatives behind `text`, all bytes of the terminal."""
        ...


def kept(locals_: LocalStates, inner: LocalState, text: bytes = b"") -> KeptState:
    """Give the state that remembers the bytes since its terminal's start."""
    return locals_.intern((inner, text), lambda: KeptState(locals_, inner, text))


class KeptState(LocalState):
    """A place in a terminal, and the bytes that led there.

    It looks like `inner` to any one token, so masks are shared between all texts: a token
    that spans the terminal, all of what follows, and what depends on its text is not foreseen.
    """

    __slots__ = ("inner", "text")

    def __init__(self, owner: LocalStates, inner: LocalState, text: bytes) -> None:
        super().__init__(owner, inner.spelling, is_greedy=False)
        self.inner = inner
        self.text = text
        self.is_final = inner.is_final

    def over(self, horizon: int) -> LocalState:
        """Give the place without its text."""
        return self.inner.over(horizon)

    @property
    def leads_on(self) -> bool:
        """True where some byte may follow that belongs to the terminal."""
        return self.inner.leads_on

    def after(self, byte: int) -> KeptState:
        """Give the place behind one more byte that leads on."""
        return kept(self._owner, self.inner.edges[byte], self.text + bytes((byte,)))

    @property
    def groups(self) -> tuple[Group, ...]:
        """What each byte leads to: each to another place, as each is another text."""
        return tuple(((byte,), self.after(byte)) for byte in self.inner.edges)

    @property
    def first(self) -> KeysView[int]:
        """The bytes that lead on."""
        return self.inner.edges.keys()

    @property
    def edges(self) -> Mapping[int, LocalState]:
        """What each byte leads to; made for those that are asked for."""
        return _Edges(self, self.inner.edges)


class _Edges(Mapping[int, LocalState]):
    """The edges of a kept state."""

    def __init__(self, state: KeptState, inner: Mapping[int, LocalState]) -> None:
        self._state = state
        self.inner = inner

    def __getitem__(self, byte: int) -> LocalState:
        if byte not in self.inner:
            raise KeyError(byte)
        return self._state.after(byte)

    def __iter__(self) -> Iterator[int]:
        return iter(self.inner)

    def __len__(self) -> int:
        return len(self.inner)
