"""Whether an array can still come to an end: no text is led to where nothing can follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .facts import TYPES, Contains, Goal
from .fold import Folder
from .kinds import value_key
from .shapes import ArrayShape, Plain

if TYPE_CHECKING:
    from .possible import Possible

MAX_UNIQUE = 64  # values of which an array can be kept free of doubles: each is its own way on
MAX_STATES = 20_000  # looked at for one array

Counts: TypeAlias = tuple[int, ...]  # for each `contains`, how many items it has found


class Behind(NamedTuple):
    """What matters of the items so far.

    `num_so_far` counts them as far as it matters, `counts` those that each `contains` wants;
    `used` are the values (`value_key`) of the items where none may come twice.
    """

    num_so_far: int
    counts: Counts
    used: frozenset[str] = frozenset()


class Item(NamedTuple):
    """An item that can come: what it meets, or its text, and where the array is then."""

    goal: Goal
    word: str | None
    after: Behind


class ArrayEnds:
    """Knows the items that can come, and whether an array can end."""

    def __init__(self, possible: Possible, folder: Folder) -> None:
        self._possible = possible
        self._folder = folder
        self._known: dict[ArrayShape, dict[Behind, bool]] = {}

    def start(self, shape: ArrayShape) -> Behind:
        """Give the place before the first item."""
        return Behind(0, (0,) * len(shape.contains))

    def is_enough(self, shape: ArrayShape, behind: Behind) -> bool:
        """Say whether the array may end here."""
        missing = any(n < c.low for c, n in zip(shape.contains, behind.counts, strict=True))
        return behind.num_so_far >= shape.low and not missing

    def items(self, shape: ArrayShape, behind: Behind) -> Iterator[Item]:
        """Give the items that can come next, also those behind which there is no end."""
        most = self._possible.num_items(shape)
        if most is not None and behind.num_so_far >= most:
            return
        last = max(shape.num_special, shape.low, 1) if most is None else most
        index, used = min(behind.num_so_far + 1, last), behind.used
        for goal, counts in self._choices(shape, behind):
            words = self.words(goal) if shape.unique is not None else None
            if words is None:
                yield Item(goal, None, Behind(index, counts, used))
            else:
                pairs = ((word, value_key(word)) for word in words)
                left = ((word, key) for word, key in pairs if key not in used)
                yield from (Item(goal, w, Behind(index, counts, used | {k})) for w, k in left)

    def words(self, goal: Goal) -> tuple[str, ...] | None:
        """Give the texts of all values that meet the goal; None if they are too many."""
        found: list[str] = []
        for shape in (s for kind in TYPES for s in self._folder.shapes(goal, kind)):
            words = shape.words if isinstance(shape, Plain) else None
            if words is None and self._possible.shape(shape):
                return None
            found += words or ()
        return tuple(found) if len(found) <= MAX_UNIQUE else None

    def can_end(self, shape: ArrayShape, behind: Behind) -> bool:
        """Say whether the array can come to an end.

        Raises: RequestError (grammar_budget) if the search is too long.
        """
        most = self._possible.num_items(shape)
        if most is not None and shape.low > most:
            return False
        if any(c.high is not None and c.low > c.high for c in shape.contains):
            return False
        if not shape.contains and shape.unique is None:
            return True
        known: dict[Behind, bool] = {}
        if not self._possible.is_searching:
            known = self._known.setdefault(shape, {})
        if behind not in known:
            self._search(shape, behind, known)
        return known[behind]

    def _search(self, shape: ArrayShape, start: Behind, known: dict[Behind, bool]) -> None:
        """Walk depth first; only a place that leads to itself can be met on its own way."""
        budget = self._folder.languages.budget
        path = [(start, self._ways_on(shape, start))]
        while path:
            behind, ways = path[-1]
            if known.get(behind) is None:
                known[behind] = self._quick(shape, behind) or False
            after = next(ways, None)
            if known[behind] or after is None:
                path.pop()
                if path and known[behind]:
                    known[path[-1][0]] = True
            elif after not in known:
                budget.spend(1, "an array")
                if len(known) > MAX_STATES:
                    budget.refuse(f"contains and uniqueItems come to more than {MAX_STATES} states")
                path.append((after, self._ways_on(shape, after)))
            elif known[after]:
                known[behind] = True

    def _ways_on(self, shape: ArrayShape, behind: Behind) -> Iterator[Behind]:
        """Give what can follow; those that have most of what is wanted first."""
        if self._quick(shape, behind) is not None:
            return iter(())
        after = dict.fromkeys(item.after for item in self.items(shape, behind))
        return iter(sorted(after, key=lambda b: sum(b.counts), reverse=True))

    def _quick(self, shape: ArrayShape, behind: Behind) -> bool | None:
        """Say it where all further items are alike and arithmetic tells; else None."""
        if self.is_enough(shape, behind):
            return True
        if behind.num_so_far < shape.num_special or len(shape.contains) > 1:
            return None
        goal, most = shape.goal(behind.num_so_far), self._possible.num_items(shape)
        if shape.unique is not None and shape.contains:
            return None
        if shape.unique is not None and (words := self.words(goal)) is not None:
            num_left = len(set(map(value_key, words)) - behind.used)
            return behind.num_so_far + num_left >= shape.low
        if not shape.contains:
            return True
        return self._one_contains(shape, behind, goal, most)

    def _one_contains(
        self, shape: ArrayShape, behind: Behind, goal: Goal, most: int | None
    ) -> bool:
        possible, (each,), (count,) = self._possible.goal, shape.contains, behind.counts
        missing = each.low - count
        num_items = max(missing, shape.low - behind.num_so_far)
        if missing > 0 and not possible(goal | each.goal):
            return False
        if most is not None and behind.num_so_far + num_items > most:
            return False
        if num_items <= missing or each.high is None or count + num_items <= each.high:
            return num_items <= missing or possible(goal)
        return any(possible(goal | more) for more, _ in _ways(each, each.high, behind.num_so_far))

    def _choices(self, shape: ArrayShape, behind: Behind) -> list[tuple[Goal, Counts]]:
        """Give what the next item can meet, and the counts after it."""
        found: list[tuple[Goal, Counts]] = [(shape.goal(behind.num_so_far), ())]
        for each, count in zip(shape.contains, behind.counts, strict=True):
            found = [
                (goal | more, (*after, number))
                for goal, after in found
                for more, number in _ways(each, count, behind.num_so_far)
            ]
        return [(goal, after) for goal, after in found if self._possible.goal(goal)]


def _ways(each: Contains, count: int, index: int) -> list[tuple[Goal, int]]:
    """Give how the next item can stand to a `contains`: what more it meets, the count after."""
    if index < each.index:
        return [(frozenset(), count)]
    failing: list[tuple[Goal, int]] = [(frozenset(), count)]
    if each.high is not None:
        failing = [(frozenset(((s, not holds),)), count) for s, holds in each.goal]
        if count < each.high:
            return [(each.goal, count + 1), *failing]
        return failing
    return [(each.goal, count + 1), *failing] if count < each.low else failing
