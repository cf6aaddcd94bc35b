"""What every kind of grammar is first: expressions over characters."""

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
class Concat:
    """One part after the other; no part is the empty text."""

    parts: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Union:
    """One of the options."""

    options: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`low` to `high` times the item; `high` None is without end. Made by `repeat`."""

    item: Expr
    low: int
    high: int | None


Expr: TypeAlias = Chars | Anchor | Concat | Union | Repeat


def repeat(item: Expr, low: int, high: int | None) -> Expr:
    """Give `low` to `high` times `item`, in a form that unrolls as little as may be."""
    if high == 0:
        return Concat()
    if not consumes(item):  # once is as good as many times
        low, high = min(low, 1), 1
    if (low, high) == (1, 1):
        return item
    if isinstance(item, Repeat) and item.low <= 1:
        # The counts that k rounds of the item can give touch those of k + 1 rounds.
        inner, most = item, None if high is None or item.high is None else high * item.high
        return repeat(inner.item, low * inner.low, most)
    return Repeat(item, low, high)


def consumes(expr: Expr) -> bool:
    """Say whether `expr` holds a character at all."""
    match expr:
        case Chars():
            return True
        case Anchor():
            return False
        case Concat(parts):
            return any(map(consumes, parts))
        case Union(options):
            return any(map(consumes, options))
        case Repeat(item):
            return consumes(item)


def is_nullable(expr: Expr) -> bool:
    """Say whether `expr` may match without taking a character."""
    match expr:
        case Chars():
            return False
        case Anchor():
            return True
        case Concat(parts):
            return all(map(is_nullable, parts))
        case Union(options):
            return any(map(is_nullable, options))
        case Repeat(item, low):
            return low == 0 or is_nullable(item)
