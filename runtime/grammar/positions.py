"""Expressions as an automaton whose steps are whole characters.

Counted repeats are unrolled, each copy a position; sets of characters stay one edge and
are shared, so a position costs the same for `a` and for `\\w`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, assert_never

from ..errors import RequestError
from .budget import Budget
from .expr import Anchor, AnchorKind, Chars, Concat, Expr, Repeat, Union
from .utf8 import DEAD, ByteClasses

ACCEPT = -1  # the item of a state at which the text may end

Items: TypeAlias = frozenset[int]  # places of the text so far; see `Positions.item`

_STARTS: tuple[AnchorKind, ...] = ("begin", "line_begin")
_ENDS: tuple[AnchorKind, ...] = ("end", "last_line", "line_end")


class Positions:
    """A grammar's positions, edges over characters, and edges over nothing.

    Trimmed by `close`: after it each item leads to an accepting place over bytes that
    tokens can spell, so no set of items is a dead end.
    """

    def __init__(self, classes: ByteClasses, budget: Budget) -> None:
        self.classes = classes
        self._budget = budget
        self._jumps: list[list[int]] = []
        self._edges: list[list[tuple[int, int]]] = []  # (root of a class, position)
        self._anchors: list[tuple[int, AnchorKind, int]] = []
        self._is_useful: list[bool] = []
        self._is_accepting: list[bool] = []
        self._closures: dict[int, Items] = {}

    def __len__(self) -> int:
        return len(self._jumps)

    def item(self, node: int, position: int) -> int:
        """Give the number of "inside a character, at `node`, then `position`"."""
        return node * len(self._jumps) + position

    def add(self, what: str) -> int:
        """Add a position, for the construct named `what`."""
        self._budget.spend(1, what)
        self._jumps.append([])
        self._edges.append([])
        return len(self._jumps) - 1

    def connect(self, start: int, chars: Chars, end: int) -> None:
        """Let one of `chars` lead from `start` to `end`."""
        root = self.classes.root(chars.ranges)
        if root != DEAD:
            self._edges[start].append((root, end))

    def build(self, expr: Expr, start: int, what: str = "the regex") -> int:
        """Add `expr` behind `start`; give the position at its end."""
        match expr:
            case Chars():
                end = self.add(what)
                self.connect(start, expr, end)
                return end
            case Anchor(kind):
                end = self.add(what)
                self._anchors.append((start, kind, end))
                return end
            case Concat(parts):
                for part in parts:
                    start = self.build(part, start, what)
                return start
            case Union(options):
                end = self.add(what)
                for option in options:
                    self._jumps[self.build(option, start, what)].append(end)
                return end
            case Repeat():
                return self._build_repeat(expr, start)
            case _:
                assert_never(expr)

    def _build_repeat(self, expr: Repeat, start: int) -> int:
        what = f"a repeat {{{expr.low},{'' if expr.high is None else expr.high}}}"
        for _ in range(expr.low):
            start = self.build(expr.item, start, what)
        if expr.high is None:
            loop = self.add(what)
            self._jumps[start].append(loop)
            self._jumps[self.build(expr.item, loop, what)].append(loop)
            return loop
        end = self.add(what)
        for _ in range(expr.high - expr.low):
            self._jumps[start].append(end)
            start = self.build(expr.item, start, what)
        self._jumps[start].append(end)
        return end

    def close(self, start: int, finals: Iterable[int]) -> Items:
        """Trim, resolve the anchors, and give the items at the beginning of the text.

        Raises: RequestError (bad_grammar) if no text matches, or an anchor is refused.
        """
        finals = list(finals)
        ends = [(a, b) for a, kind, b in self._anchors if kind in _ENDS]
        starts = [(a, b) for a, kind, b in self._anchors if kind in _STARTS]
        jumps = [(a, b) for a, after in enumerate(self._jumps) for b in after]
        steps = [(a, b) for a, after in enumerate(self._edges) for _, b in after]
        self._is_accepting = self._reach(finals, [(b, a) for a, b in (*jumps, *ends)])
        accepting = [p for p, is_in in enumerate(self._is_accepting) if is_in]
        self._is_useful = self._reach(accepting, [(b, a) for a, b in (*jumps, *steps)])
        self._check_lines(jumps, starts, ends)
        first = self._reach([start], [*jumps, *starts])
        items = {i for p, is_in in enumerate(first) if is_in for i in self._items(p)}
        empty = self._reach([start], [*jumps, *starts, *ends])
        if any(empty[p] for p in finals):
            items.add(ACCEPT)
        if not items:
            message = "no text matches the constraint, or no token spells one"
            raise RequestError("bad_grammar", message)
        return frozenset(items)

    def closure(self, position: int) -> Items:
        """Give the items at `position`, which a whole character led to."""
        found = self._closures.get(position)
        if found is None:
            found = self._closures[position] = frozenset(self._close(position))
        return found

    def _close(self, position: int) -> Iterable[int]:
        stack, seen = [position], {position}
        if self._is_accepting[position]:
            yield ACCEPT
        while stack:
            place = stack.pop()
            yield from self._items(place)
            fresh = [p for p in self._jumps[place] if p not in seen]
            seen.update(fresh)
            stack.extend(fresh)

    def _items(self, position: int) -> Iterable[int]:
        edges = self._edges[position]
        return (self.item(root, end) for root, end in edges if self._is_useful[end])

    def _reach(self, starts: Iterable[int], arrows: Sequence[tuple[int, int]]) -> list[bool]:
        """Say for each position whether some of `starts` leads there along `arrows`."""
        after: list[list[int]] = [[] for _ in self._jumps]
        for a, b in arrows:
            after[a].append(b)
        stack = list(starts)
        is_reached = [False] * len(after)
        while stack:
            place = stack.pop()
            if not is_reached[place]:
                is_reached[place] = True
                stack.extend(after[place])
        self._budget.check_time("the constraint")
        return is_reached

    def _check_lines(
        self,
        jumps: list[tuple[int, int]],
        starts: list[tuple[int, int]],
        ends: list[tuple[int, int]],
    ) -> None:
        """Refuse `^` and `$` where a newline beside them would make them more than no-ops."""
        free = [*jumps, *starts, *ends]
        wants = self._anchored("line_begin", lambda a, _: a)
        before = self._reach(wants, [(b, a) for a, b in free])
        last = self._reach(self._anchored("last_line", lambda _, b: b), free)
        inner = self._reach(self._anchored("line_end", lambda _, b: b), free)
        for place, edges in enumerate(self._edges):
            for root, end in edges:
                if not self.classes.accepts_newline(root):
                    continue
                is_after = (last[place] and self._is_accepting[end]) or (
                    inner[place] and self._is_useful[end]
                )
                if before[end] or is_after:
                    name = "^ after" if before[end] else "$ before"
                    message = f"regex: {name} a newline is not supported in a constraint"
                    raise RequestError("bad_grammar", f"{message}; use \\A, \\Z or no anchor")

    def _anchored(self, kind: AnchorKind, end: Callable[[int, int], int]) -> list[int]:
        return [end(a, b) for a, k, b in self._anchors if k == kind]
