"""What the author's frames are in the middle of: exact spans of source, from Python's tables."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from itertools import islice
from opcode import opmap
from types import FrameType
from typing import TypeAlias

from .where import is_authors

Span: TypeAlias = tuple[tuple[int, int], tuple[int, int]]  # from line and column, to both

_GIVES = {opmap["RETURN_VALUE"], opmap["YIELD_VALUE"]}
_COPY = opmap["COPY"]
_STORES = {code for name, code in opmap.items() if name.startswith("STORE_")}
_LAST_COLUMN = 2**31


@dataclass(frozen=True, slots=True)
class Moment:
    """One frame, and the span of the expression or statement that it evaluates."""

    frame: FrameType = field(repr=False)
    span: Span | None

    @property
    def gives(self) -> bool:
        """Say whether what is evaluated goes to the caller at once, and nowhere else.

        So it is in a lambda, in a comprehension, and in a `return` or `yield` statement. (Of
        a `return` inside `try: ... finally:` Python does not tell the place: it counts as no.)
        """
        code = self.frame.f_code
        if code.co_name.startswith("<") and code.co_name != "<module>":
            return True
        units = zip(code.co_code[::2], code.co_positions(), strict=True)
        return any(op in _GIVES and is_inside(self.span, _of(*place)) for op, place in units)

    @property
    def is_named(self) -> bool:
        """Say whether what is evaluated gets a name on its way, by `:=`."""
        code = self.frame.f_code
        ops = code.co_code[::2]
        units = zip(ops, ops[1:], code.co_positions(), strict=False)
        return any(
            op == _COPY and after in _STORES and is_inside(self.span, _of(*place))
            for op, after, place in units
        )


def under_way(base: FrameType) -> tuple[Moment, ...]:
    """Give the author's frames above `base`, the innermost first."""
    steps: list[Moment] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not base:
        if is_authors(frame.f_code.co_filename):
            steps.append(Moment(frame, _span(frame)))
        frame = frame.f_back
    return tuple(steps)


def is_inside(inner: Span | None, outer: Span | None) -> bool:
    """Say whether a span lies in another; one that Python does not tell lies in none."""
    return inner is not None and outer is not None and outer[0] <= inner[0] <= inner[1] <= outer[1]


def _span(frame: FrameType) -> Span | None:
    positions = frame.f_code.co_positions()
    return _of(*next(islice(positions, frame.f_lasti // 2, None), (None,) * 4))


def _of(
    line: int | None, end: int | None, column: int | None, end_column: int | None
) -> Span | None:
    if line is None:
        return None
    # Without columns (`python -X no_debug_ranges`) a span is its first line.
    if end is None or column is None or end_column is None:
        return (line, 0), (line, _LAST_COLUMN)
    return (line, column), (end, end_column)
