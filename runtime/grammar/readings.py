"""How a whole text is read, and where what is marked lies in it: one reading out of all.

Readings are followed side by side, the preferred ones first. Of two, the better one is the
one that, where their marks differ first, begins something there that the other does not, or
does not yet end what the other ends: so each marked part is as long as it can be, from left
to right. Where that leaves several, the alternative that comes first is taken.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from .mark import Mark, Path
from .node import Terminal
from .pushdown import Pushdown, step_guards
from .state import Cell, Config
from .switch import Switch

# Marks in a row, shared from the end: a long way out of many parts costs one link a step.
Marks: TypeAlias = "tuple[Mark, Marks] | None"
# Where a text stands, or None where it ends there, and the marks passed on the way.
Step: TypeAlias = "tuple[Config | None, Marks]"
_ORDER = {"open": -1, "close": 1, "done": 1}  # beside 0: no mark more


class Span(NamedTuple):
    """A text of what is marked: its bytes from `start` to `end`."""

    path: Path
    start: int
    end: int


class Reading(NamedTuple):
    """The spans in a text, those first that end first; and whether the text could go on."""

    spans: tuple[Span, ...]
    can_go_on: bool


_Found: TypeAlias = "tuple[int, Config | None, Marks, _Place | None]"


class _Place(NamedTuple):
    """One way to read the text so far; `rank` orders them, equal where the marks are."""

    at: Config | None
    rank: int
    marks: Marks  # behind the last byte
    before: _Place | None


class Readings:
    """Reads texts of one grammar. Not thread-safe: use it inside its pool's `using`."""

    def __init__(self, pushdown: Pushdown, start: Cell) -> None:
        self._pushdown = pushdown
        self._start = start
        self._closures: dict[Cell, tuple[Step, ...]] = {}
        self._after: dict[tuple[Config, int], tuple[Step, ...]] = {}
        self._num_steps = 0  # in both

    def __len__(self) -> int:
        """Count what is kept: each place that was stepped from, and each step."""
        return len(self._closures) + len(self._after) + self._num_steps

    def read(self, text: bytes) -> Reading | None:
        """Give the preferred reading of a text; None if, as a whole, it is none."""
        places = _ranked([(0, at, marks, None) for at, marks in self._closure(self._start)])
        for byte in text:
            found: list[_Found] = [
                (place.rank, at, marks, place)
                for place in places
                if place.at is not None
                for at, marks in self._step(place.at, byte)
            ]
            if not found:
                return None
            places = _ranked(found)
        ends = [place for place in places if place.at is None]
        if not ends:
            return None
        return Reading(tuple(_spans(ends[0], len(text))), len(places) > len(ends))

    def _step(self, config: Config, byte: int) -> tuple[Step, ...]:
        found = self._after.get((config, byte))
        if found is None:
            self._pushdown.budget.spend(1, "the text")
            found = self._after[config, byte] = tuple(self._steps(config, byte))
            self._num_steps += len(found)
        return found

    def _steps(self, config: Config, byte: int) -> Iterator[Step]:
        local = config.local.edges.get(byte)
        guards = config.guards
        if guards and local is not None:
            left = step_guards(guards, byte)
            local, guards = (None, guards) if left is None else (local, left)
        if local is None:
            return
        if local.groups or not local.is_final:
            yield Config(local, config.rest, guards), None
        if local.is_final:
            if local.is_greedy and local.guard.groups:
                guards = guards | {local.guard}
            for cell in self._pushdown.rests(local, config.rest):
                for at, marks in self._closure(cell):
                    yield at and at._replace(guards=at.guards | guards), marks

    def _closure(self, start: Cell | None) -> tuple[Step, ...]:
        """Give where a text may stand before `start`, in the order of the alternatives."""
        if start is None:
            return ((None, None),)
        if start not in self._closures:
            # A chain of marks is taken apart from its end, so that its parts are shared.
            chain = [start]
            while isinstance(chain[-1].node, Mark) and chain[-1].rest is not None:
                if chain[-1].rest in self._closures:
                    break
                chain.append(chain[-1].rest)
            for cell in reversed(chain):
                found = self._closures[cell] = tuple(self._closed(cell))
                self._num_steps += len(found)
        return self._closures[start]

    def _closed(self, start: Cell) -> Iterator[Step]:
        if isinstance(start.node, Mark):
            for at, marks in self._closure(start.rest):
                yield at, (start.node, marks)
            return
        seen: set[Cell | None] = set()
        pending: list[tuple[Cell | None, tuple[Mark, ...]]] = [(start, ())]
        while pending:
            cell, passed = pending.pop()
            if cell in seen:
                continue
            seen.add(cell)
            if cell is None or cell in self._closures:
                for at, marks in self._closure(cell):
                    yield at, _linked(passed, marks)
                continue
            node = cell.node
            if isinstance(node, Mark):
                pending.append((cell.rest, (*passed, node)))
            elif isinstance(node, Switch):
                yield Config(node.start, cell.rest), _linked(passed, None)
            elif isinstance(node, Terminal):
                if node.start.groups:
                    at = Config(node.start, cell.rest, frozenset(node.unless))
                    yield at, _linked(passed, None)
                if node.start.is_final:
                    pending.append((cell.rest, passed))
            else:
                self._pushdown.budget.spend(1, "the text")
                rows = reversed(node.expand())
                pending += [(self._pushdown.push_row(row, cell.rest), passed) for row in rows]


def _linked(passed: tuple[Mark, ...], marks: Marks) -> Marks:
    for mark in reversed(passed):
        marks = (mark, marks)
    return marks


def _ranked(found: list[_Found]) -> list[_Place]:
    """Give the places, the preferred first; of those that go on alike the preferred alone."""
    if len(found) > 1:
        found.sort(key=functools.cmp_to_key(_compare))
    places: dict[Config | None, _Place] = {}
    rank, last = 0, found[0]
    for each in found:
        _, at, marks, before = each
        if each is not last and _compare(last, each):
            rank += 1
        last = each
        if at not in places:
            places[at] = _Place(at, rank, marks, before)
    return list(places.values())


def _compare(one: _Found, other: _Found) -> int:
    if one[0] != other[0]:
        return one[0] - other[0]
    mine, others = one[2], other[2]
    while mine is not others:
        mine, others = _named(mine), _named(others)
        own = 0 if mine is None else _ORDER[mine[0].kind]
        its = 0 if others is None else _ORDER[others[0].kind]
        if own != its:
            return own - its
        if mine is None or others is None:
            return 0
        mine, others = mine[1], others[1]
    return 0


def _named(marks: Marks) -> Marks:
    """Leave out the frames that come first: they are no parts."""
    while marks is not None and not marks[0].path:
        marks = marks[1]
    return marks


def _spans(end: _Place, length: int) -> Iterator[Span]:
    """Give the spans of the reading that ends there, those first that end first."""
    passed: list[tuple[int, Marks]] = []
    place: _Place | None = end
    while place is not None:
        passed.append((length, place.marks))
        place, length = place.before, length - 1
    opened: list[int] = []
    for at, marks in reversed(passed):
        while marks is not None:
            mark, marks = marks
            if mark.kind == "open":
                opened.append(at)
                continue
            start = opened[-1] if mark.kind == "done" else opened.pop()
            if mark.path:
                yield Span(mark.path, start, at)
