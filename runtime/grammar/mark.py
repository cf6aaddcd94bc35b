"""Where the named parts of a text begin and end: nodes that take no text.

Only grammars that texts are split by have them; no mask is made of one.

Most names have an `open` and a `close` around them. A left-recursive rule cannot: in
`a ::= a "+" b | b` nobody knows, where `1+2+3` begins, how many texts of `a` begin there.
So a frame is opened there, which is the beginning of all of them, and each is `done` where
it ends: frame open, `b` open, 1, `b` close, `a` done, +, `b` open, 2, `b` close, `a` done,
+, `b` open, 3, `b` close, `a` done, frame close.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from .node import Node, Nodes, Row

Path: TypeAlias = tuple[str, ...]  # the part, the part in it, ...; () is a frame
MarkKind: TypeAlias = Literal["open", "close", "done"]


class Mark:
    """One end of what has a name.

    `done`: a text of the name ends here, which began where the innermost open frame did; a
    frame is opened and closed as what has a name is.
    """

    __slots__ = ("kind", "path", "twin")

    def __init__(self, kind: MarkKind, path: Path) -> None:
        self.kind: MarkKind = kind
        self.path = path
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give the empty text."""
        return ((),)


class Marker:
    """Marks what has one of some names, in the part at `path`; with `names` None, nothing."""

    def __init__(self, nodes: Nodes, names: frozenset[str] | None, path: Path = ()) -> None:
        self._nodes = nodes
        self._names = names
        self._path = path

    def marks(self, name: str) -> bool:
        """Say whether `name` is marked."""
        return self._names is not None and name in self._names

    def inside(self, name: str, names: frozenset[str]) -> Marker:
        """Give the marker for what is inside the part `name`."""
        marked = None if self._names is None else names
        return Marker(self._nodes, marked, (*self._path, name))

    def around(self, name: str, *row: Node) -> Row:
        """Give a row with the marks of `name` around it, if that is marked."""
        if not self.marks(name):
            return row
        path = (*self._path, name)
        return (self._mark("open", path), *row, self._mark("close", path))

    def frame(self, kind: MarkKind) -> Row:
        """Give one end of a frame."""
        return (self._mark(kind, ()),)

    def done(self, name: str) -> Row:
        """Give the end of a text of `name` that began with the frame, if that is marked."""
        return (self._mark("done", (*self._path, name)),) if self.marks(name) else ()

    def _mark(self, kind: MarkKind, path: Path) -> Node:
        return self._nodes.make(Mark, kind, path)
