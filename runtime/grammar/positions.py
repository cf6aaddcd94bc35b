"""Expressions as an automaton whose steps are whole characters.

Counted repeats are unrolled, each copy a position; sets of characters stay one edge and
are shared, so a position costs the same for `a` and for `\\w`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from ..errors import RequestError
from .budget import Budget
from .expr import Anchor, AnchorKind, Chars, Concat, Expr, Repeat, Union, is_nullable
from .utf8 import DEAD, ByteClasses

MAX_PLACES = 5_000  # in one state; a step costs milliseconds there
ACCEPT = -1  # stands for a node in a state at which the text may end

Places: TypeAlias = frozenset[int]  # positions
# Where a text may stand: for each node inside a character (ascending) the positions that
# the whole character leads to. Characters of many bytes so share their sets of positions.
State: TypeAlias = tuple[tuple[int, Places], ...]
WHOLE_TEXT: State = ((ACCEPT, frozenset()),)  # the text may end, and must

_STARTS: tuple[AnchorKind, ...] = ("begin", "line_begin")
_ENDS: tuple[AnchorKind, ...] = ("end", "last_line", "line_end")


def is_accepting(state: State) -> bool:
    """Say whether the text may end at `state`."""
    return bool(state) and state[0][0] == ACCEPT


class Positions:
    """A grammar's positions, edges over characters, and edges over nothing.

    Trimmed by `close`: after it each position leads to an accepting place over bytes that
    tokens can spell, so no state is a dead end. `horizon` is the length of the
    longest token: copies of a repeat that lie further than that from its ends are twins.
    """

    def __init__(self, classes: ByteClasses, budget: Budget, horizon: int) -> None:
        self.classes = classes
        self._budget = budget
        self._horizon = horizon
        self._twins: dict[int, int] = {}
        self._jumps: list[list[int]] = []
        self._edges: list[list[tuple[int, int]]] = []  # (root of a class, position)
        self._anchors: list[tuple[int, AnchorKind, int]] = []
        self._is_useful: list[bool] = []
        self._is_accepting: list[bool] = []
        self._after: dict[Places, State] = {}
        self.num_kept = 0  # positions in what `after` keeps

    def __len__(self) -> int:
        return len(self._jumps)

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

    def jump(self, start: int, end: int) -> None:
        """Let `end` be reached from `start` without a character."""
        self._jumps[start].append(end)

    def _build_repeat(self, expr: Repeat, start: int) -> int:
        what = f"a repeat {{{expr.low},{'' if expr.high is None else expr.high}}}"
        copies: list[range] = []
        for _ in range(expr.low):
            start = self._build_copy(expr.item, start, what, copies)
        if expr.high is None:
            end = self.add(what)
            self._jumps[start].append(end)
            self._jumps[self.build(expr.item, end, what)].append(end)
        else:
            end = self.add(what)
            for _ in range(expr.high - expr.low):
                self._jumps[start].append(end)
                start = self._build_copy(expr.item, start, what, copies)
            self._jumps[start].append(end)
        if not is_nullable(expr.item):
            self._pair_twins(copies[: expr.low])
            self._pair_twins(copies[expr.low :])
        return end

    def _build_copy(self, item: Expr, start: int, what: str, copies: list[range]) -> int:
        first = len(self)
        end = self.build(item, start, what)
        copies.append(range(first, len(self)))
        return end

    def _pair_twins(self, copies: Sequence[range]) -> None:
        """Note that copies far from the end look the same as the first, for a whole token.

        Each copy takes a byte at least, so no token reaches past `horizon` copies.
        """
        for copy in copies[1 : max(1, len(copies) - self._horizon)]:
            self._twins.update(zip(copy, copies[0], strict=True))

    def twin(self, state: State) -> State:
        """Give a state that allows the same tokens, the same for all states alike."""
        if not self._twins:
            return state
        return tuple((node, frozenset(map(self._first_twin, places))) for node, places in state)

    def _first_twin(self, position: int) -> int:
        while position in self._twins:
            position = self._twins[position]
        return position

    def close(self, start: int, finals: Iterable[int]) -> State:
        """Trim, resolve the anchors, and give the state at the beginning of the text.

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
        empty = self._reach([start], [*jumps, *starts, *ends])
        reached = [p for p, is_in in enumerate(first) if is_in]
        state = self._state(reached, may_end=any(empty[p] for p in finals))
        if not state:
            message = "no text matches the constraint, or no token spells one"
            raise RequestError("bad_grammar", message)
        return state

    def after(self, places: Places, budget: Budget) -> State:
        """Give the state once a whole character led to `places`. Kept until `forget`."""
        found = self._after.get(places)
        if found is None:
            budget.check_time("the next token's mask")
            found = self._spread(places)
            size = sum(len(ends) for _, ends in found)
            if size > MAX_PLACES:
                message = (
                    f"a text can stand in more than {MAX_PLACES} places of its repeats at once"
                )
                raise RequestError("grammar_budget", f"grammar too large: {message}")
            self._after[places] = found
            self.num_kept += len(places) + size
        return found

    def forget(self) -> None:
        """Drop what `after` keeps."""
        self._after.clear()
        self.num_kept = 0

    def _spread(self, places: Places) -> State:
        """Follow the jumps from `places`, and give all that can be read there."""
        stack, seen = list(places), set(places)
        while stack:
            fresh = [p for p in self._jumps[stack.pop()] if p not in seen]
            seen.update(fresh)
            stack.extend(fresh)
        return self._state(seen, may_end=any(self._is_accepting[p] for p in places))

    def _state(self, positions: Iterable[int], *, may_end: bool) -> State:
        ends: dict[int, set[int]] = {ACCEPT: set()} if may_end else {}
        for position in positions:
            for root, end in self._edges[position]:
                if self._is_useful[end]:
                    ends.setdefault(root, set()).add(end)
        return tuple((root, frozenset(ends[root])) for root in sorted(ends))

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
