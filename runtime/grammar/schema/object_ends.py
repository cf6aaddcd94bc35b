"""Whether an object can still come to an end: no text is led to where nothing can follow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..words import without
from .facts import Goal
from .fold import Folder
from .free_names import FreeClass, FreeNames
from .shapes import ObjectShape

if TYPE_CHECKING:
    from .possible import Possible

MAX_WISHES = 8  # what some property must be, in one object

Wishes: TypeAlias = frozenset[int]


class Behind(NamedTuple):
    """What matters of the properties so far.

    `left`: the numbers of the listed names that can still come; `num_so_far`: the properties,
    as far as it matters; `wanted`: what at least one property must still be; `used`:
    the names so far that are not listed, for none to come twice.
    """

    left: tuple[int, ...]
    num_so_far: int
    wanted: Wishes
    used: frozenset[str] = frozenset()


class Listed(NamedTuple):
    """A listed name that an object can have, what its value meets, and the wishes it is for."""

    name: str
    goal: Goal
    wishes: Wishes
    is_required: bool


class ObjectEnds:
    """Knows the properties that can come, and whether an object can end."""

    def __init__(self, possible: Possible, folder: Folder, free: FreeNames) -> None:
        self._possible = possible
        self._folder = folder
        self._free = free

    def start(self, shape: ObjectShape) -> Behind:
        """Give the place before the first property."""
        wanted = frozenset(range(len(self._free.wanted(shape))))
        return Behind(tuple(range(len(self._possible.names(shape)))), 0, wanted)

    def num_required(self, shape: ObjectShape, behind: Behind) -> int:
        """Count the required names that are left."""
        names = self._possible.names(shape)
        return sum(names[number].is_required for number in behind.left)

    def is_enough(self, shape: ObjectShape, behind: Behind, num_required: int) -> bool:
        """Say whether the object may end here."""
        return not num_required and not behind.wanted and behind.num_so_far >= shape.low

    def is_open(self, shape: ObjectShape, behind: Behind, num_required: int) -> bool:
        """Say whether it is plain that each listed name that is left can come next."""
        is_low = shape.low <= behind.num_so_far + num_required
        return is_low and shape.high is None and not behind.wanted

    def next(
        self, shape: ObjectShape, behind: Behind, left: tuple[int, ...], wanted: Wishes
    ) -> Behind:
        """Give the place behind one property more."""
        most = shape.low if shape.high is None else shape.high + 1
        return Behind(left, min(behind.num_so_far + 1, most), wanted, behind.used)

    def ways(
        self, shape: ObjectShape, goal: Goal, wishes: Wishes, wanted: Wishes
    ) -> Iterator[tuple[Goal, Wishes]]:
        """Give what a value can meet beside its goal, and the wishes that are left then.

        A wish that is met anyway is never left.
        """
        every = self._free.wanted(shape)
        met = frozenset(n for n in wishes & wanted if every[n].goal <= goal)
        more = sorted((wishes & wanted) - met)
        for chosen in itertools.chain.from_iterable(
            itertools.combinations(more, n) for n in range(len(more) + 1)
        ):
            whole = goal.union(*(every[n].goal for n in chosen))
            if not chosen or self._possible.goal(whole):
                yield whole, wanted - met - frozenset(chosen)

    def can_end(
        self, shape: ObjectShape, behind: Behind, num_required: int,
        taken: FreeClass | None = None,
    ) -> bool:  # fmt: skip
        """Say whether the object can come to an end; `taken`: of which a name is used, too.

        Raises: RequestError (grammar_budget) if it has too many wishes.
        """
        room = None if shape.high is None else shape.high - behind.num_so_far
        if room is not None and num_required > room:
            return False
        missing = shape.low - behind.num_so_far - len(behind.left)
        if missing > 0 and self._num_free(shape, behind, missing, taken) < missing:
            return False
        if not behind.wanted:
            return True
        least = self._least(shape, behind, taken)
        return least is not None and (room is None or num_required + least <= room)

    def _num_free(
        self, shape: ObjectShape, behind: Behind, most: int, taken: FreeClass | None
    ) -> int:
        """Count the unlisted names that can still come, up to `most`."""
        found = 0
        for each in self._possible.free_classes(shape):
            if found < most:
                found += self._num_names(each, behind.used, most, each is taken)
        return min(found, most)

    def _num_names(self, each: FreeClass, used: frozenset[str], most: int, is_taken: bool) -> int:
        unused = without(used, each.names, self._folder.languages)
        return self._folder.num_texts(unused, most + is_taken) - is_taken

    def _least(self, shape: ObjectShape, behind: Behind, taken: FreeClass | None) -> int | None:
        """Count the properties that are needed beside the required ones to meet all wishes."""
        if len(behind.wanted) > MAX_WISHES:
            reason = f"an object has more than {MAX_WISHES} wishes that some property must meet"
            self._folder.languages.budget.refuse(reason)
        least: dict[Wishes, int] = {behind.wanted: 0}  # by what is left
        names = self._possible.names(shape)
        for number in behind.left:
            _, goal, wishes, is_required = names[number]
            if wishes & behind.wanted:
                least = self._with(shape, least, goal, wishes, is_required)
        for each in self._possible.free_classes(shape):
            if each.wishes & behind.wanted:
                most = len(behind.wanted)
                for _ in range(self._num_names(each, behind.used, most, each is taken)):
                    least = self._with(shape, least, each.goal, each.wishes, False)
        return least.get(frozenset())

    def _with(
        self, shape: ObjectShape, least: dict[Wishes, int], goal: Goal, wishes: Wishes,
        is_required: bool,
    ) -> dict[Wishes, int]:  # fmt: skip
        found = {} if is_required else dict(least)
        for wanted, count in least.items():
            for _, left in self.ways(shape, goal, wishes, wanted):
                cost = count + (not is_required)
                found[left] = min(found.get(left, cost), cost)
        return found
