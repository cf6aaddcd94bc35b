"""What every regular constraint is first: expressions over characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]  # code points, inclusive, sorted, disjoint

# "begin", "end": the whole text's. "last_line" is Python's `$`: the end, or before a last
# newline. "line_begin", "line_end": those of each line.
AnchorKind: TypeAlias = Literal["begin", "end", "last_line", "line_begin", "line_end"]


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set; the empty set matches nothing."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Anchor:
    """No character, at this place only."""

    kind: AnchorKind


@dataclass(frozen=True, slots=True)
class Look:
    """No character, where the text ahead (or behind) matches `item`, or does not."""

    item: Expr
    is_ahead: bool
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Concat:
    """One part after the other; no part is the empty text."""

    parts: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Union:
    """One of the options."""

    options: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """A text that matches each of the parts."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A text that does not match the item as a whole."""

    item: Expr


@dataclass(frozen=True, slots=True)
class Repeat:
    """`low` to `high` times the item; `high` None is without end.

    `is_lazy` says which of the texts `re` would take first; the language is the same.
    """

    item: Expr
    low: int
    high: int | None
    is_lazy: bool = False


Expr: TypeAlias = Chars | Anchor | Look | Concat | Union | Both | Not | Repeat

ANY = Chars(((0, 0xD7FF), (0xE000, 0x10FFFF)))  # any character that UTF-8 can write
ANYTHING = Repeat(ANY, 0, None)
EMPTY = Concat()


def literal(text: str) -> Expr:
    """Give the expression that matches exactly `text`."""
    return Concat(tuple(Chars(((ord(c), ord(c)),)) for c in text))


def parts_of(expr: Expr) -> tuple[Expr, ...]:
    """Give the expressions directly inside."""
    match expr:
        case Chars() | Anchor():
            return ()
        case Look(item) | Not(item) | Repeat(item):
            return (item,)
        case Concat(parts) | Both(parts) | Union(parts):
            return parts


def looks_around(expr: Expr) -> bool:
    """Say whether it holds an anchor or a look: what it matches then depends on its place."""
    found, pending = False, [expr]
    while pending and not found:
        item = pending.pop()
        found = isinstance(item, Anchor | Look)
        pending.extend(parts_of(item))
    return found
