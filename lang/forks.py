"""The branches of one fork, and the values that a join gathers from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast, overload

from .bodies import BranchBodies
from .branching import nodes_below
from .errors import InvalidArgument, UnknownVariable
from .expr import Expr, expr_of, parts_of
from .ops import Source
from .outcomes import Outcome, Retry, Then
from .where import place

if TYPE_CHECKING:
    from .driver import Driver, TaskGroup
    from .state import State

Appended: TypeAlias = str | Expr
Broadcast: TypeAlias = Appended | Callable[[int], Appended] | Sequence[Appended]
# The branches' values by index; an error stands where the branch failed, and is collected.
Gathered: TypeAlias = tuple[Source | Exception | None, ...]
Fills: TypeAlias = Mapping[int, Exception | None]
_NO_FILLS: Fills = MappingProxyType({})


def gather(
    branches: Sequence[Mapping[str, Source]], fills: Fills = _NO_FILLS
) -> dict[str, Gathered]:
    """Join what branches set: name -> source by branch index, None where one did not set it.

    `fills` has what stands in the places of the branches that failed.
    """
    names = dict.fromkeys(name for own in branches for name in own)
    return {
        name: tuple(fills[i] if i in fills else own.get(name) for i, own in enumerate(branches))
        for name in names
    }


def read(driver: Driver, found: Gathered) -> list[Any]:
    """Give the values of a joined variable by index."""
    return [driver.value(item) if isinstance(item, Source) else item for item in found]


class Joined(Mapping[str, list[Any]]):
    """Name -> values by branch index, of every name that a branch set itself.

    The list has one place a branch. It holds None where a branch did not set the name,
    so that an index always means the same branch. If all branches failed, every name has
    what stands in their places.
    """

    def __init__(
        self, driver: Driver, sources: Mapping[str, Gathered], fills: Fills | None = None
    ) -> None:
        self._driver = driver
        self._sources = sources
        self._fills = fills

    def __getitem__(self, name: str) -> list[Any]:
        if self._fills:
            return [self._fills[i] for i in range(len(self._fills))]
        if name not in self._sources:
            known = ", ".join(self._sources) or "none"
            raise UnknownVariable(f'{place()}no branch set "{name}"; the branches set: {known}')
        return read(self._driver, self._sources[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def __repr__(self) -> str:
        return f"Joined({', '.join(self._sources)})"


class Forks(Sequence["State"]):
    """The branches of a fork by index; with bodies, they run as tasks of their own.

    `forks += x` appends to each: one text or expression to all, a function of the
    branch's index, or a list with one item a branch.
    """

    def __init__(
        self,
        parent: State,
        branches: list[State],
        bodies: BranchBodies,
        policy: Retry,
        timeout: float | None,
    ) -> None:
        self._parent = parent
        self._branches = branches  # a new attempt takes the place of the old
        self._bodies = bodies
        self._has_bodies = bodies.body is not None
        self._policy = policy
        self._timeout = timeout
        self._group: TaskGroup | None = None
        self._dropped: set[int] = set()  # cancelled by the author: that is no failure
        self._is_seen = False
        if self._has_bodies:
            self._start()

    @overload
    def __getitem__(self, index: int) -> State: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[State]: ...

    def __getitem__(self, index: int | slice) -> State | Sequence[State]:
        return self._branches[index]

    def __setitem__(self, index: int, state: State) -> None:
        # Python calls this at the end of `forks[0] += "text"`.
        if self._branches[index] is not state:
            raise InvalidArgument(f"{place()}forks[{index}] = ...: a branch cannot be replaced")

    def __len__(self) -> int:
        return len(self._branches)

    def __iadd__(self, what: Broadcast) -> Forks:
        each = self._spread(what)
        for item in each:  # all are checked before the first is appended
            parts_of(item)
        for branch, item in zip(self._branches, each, strict=True):
            branch += item
        return self

    def _spread(self, what: Broadcast) -> list[Appended]:
        num_branches = len(self)
        if callable(what):
            return [what(i) for i in range(num_branches)]
        if not issubclass(type(what), list | tuple):  # so that a trace's stand-in passes
            return [expr_of(what)] * num_branches
        each = list(cast(Sequence[Appended], what))
        if len(each) != num_branches:
            raise InvalidArgument(
                f"{place()}forks += [...]: {len(each)} items for {num_branches} branches; "
                "pass one a branch"
            )
        return each

    def join(self, *, return_exceptions: bool = False) -> Joined:
        """Wait for all branches, and give what they set: name -> list by branch index.

        The parent's text and own variables stay as they are. Afterwards `s[name]` on the
        parent is the list, unless the parent has set the name itself; a later join replaces
        the lists of the same names. The branches stay usable.

        A branch that failed has in its place None under "skip", the error under "collect" and
        with `return_exceptions`; one that was cancelled by `cancel` or `first` has None.

        Raises: under "raise" the first branch's failure, after cancelling the rest.
        """
        then: Then = "collect" if return_exceptions else self._policy.then
        if self._group is None and then != "raise":
            self._start()
        if self._group is None:
            below = (nodes_below(b, has_bodies=False) for b in self._branches)
            self._parent._driver.wait(sorted(node for nodes in below for node in nodes))
        else:
            self._settle(then)
        fills = self._fills(then)
        sources = gather([dict(branch._own) for branch in self._branches], fills)
        self._parent._keep_joined(sources)
        return Joined(self._parent._driver, sources, fills if len(fills) == len(self) else None)

    @property
    def values(self) -> list[Any]:
        """Give what the bodies returned, by index; waits, and treats failures as `join` does.

        Raises: under "raise" the first failure; InvalidArgument for a fork without bodies.
        """
        if not self._has_bodies:
            raise InvalidArgument(
                f"{place()}forks.values: these branches have no body; pass one: s.fork(n, body)"
            )
        self._settle(self._policy.then)
        fills = self._fills(self._policy.then)
        found = {outcome.index: outcome.value for outcome in self._finished()}
        return [fills[i] if i in fills else found[i] for i in range(len(self))]

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Give how each branch ended, by index; waits for all, and raises no branch's failure."""
        if self._group is None:
            self._start()
        self._settle("collect")
        return tuple(sorted(self._finished(), key=lambda outcome: outcome.index))

    def as_completed(self) -> Iterator[Outcome]:
        """Give the outcomes as they come; those that were cancelled are left out.

        Under "skip" those that failed are left out, under "collect" they come as they are.

        Raises: under "raise" the first failure, after cancelling the rest.
        """
        if self._group is None:
            self._start()
        assert self._group is not None
        num_seen = 0
        while num_seen < len(self):
            self._group.wait(num_seen + 1)
            outcome = self._group.finished[num_seen]
            num_seen += 1
            if outcome.index in self._dropped:
                continue
            if not outcome.ok and self._policy.then == "raise":
                self._settle("raise")
            if outcome.ok or self._policy.then == "collect":
                yield outcome

    def first(self, k: int) -> list[Outcome]:
        """Give the first `k` branches that come to their end, in that order; cancel the rest.

        There are fewer if more of the branches fail, under "skip" and "collect".

        Raises: under "raise" the first failure, after cancelling the rest.
        """
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= len(self):
            raise InvalidArgument(f"{place()}forks.first({k!r}): pass 1 to {len(self)}, how many")
        found: list[Outcome] = []
        for outcome in self.as_completed():
            found += [outcome] if outcome.ok else []
            if len(found) == k:
                break
        self.cancel()
        return found

    def cancel(self) -> None:
        """End the branches that still run, and what they have asked for. Not a failure."""
        self._cancel(range(len(self)))

    # For states and bodies

    def _cancel(self, indices: Iterable[int]) -> None:
        if self._group is None:
            self._start()
        assert self._group is not None
        ended = {outcome.index for outcome in self._group.finished}
        rest = [i for i in indices if i not in ended]
        self._dropped.update(rest)
        self._group.cancel(rest)

    def _start(self) -> None:
        """Start the tasks; without bodies they wait for what the branches have recorded."""
        policy = self._policy
        self._group = self._parent._driver.start(self._bodies, policy.times, self._timeout)

    def _settle(self, then: Then) -> None:
        """Wait for the branches. Raises: under "raise" the first failure, the rest cancelled."""
        assert self._group is not None
        self._is_seen = True
        self._group.wait(len(self), stops_at_failure=then == "raise" and not self._dropped)
        failures = [o for o in self._finished() if not o.ok and o.index not in self._dropped]
        if then == "raise" and failures:
            self._group.end()
        for i, fill in self._fills(then).items():  # as the run's result will have it
            self._parent._tape.replace(self._bodies.path(i), fill)
        if then == "raise" and failures:
            assert failures[0].error is not None
            raise failures[0].error

    def _finished(self) -> Sequence[Outcome]:
        return () if self._group is None else self._group.finished

    def _fills(self, then: Then) -> dict[int, Exception | None]:
        """Give what stands in the places of the branches that failed."""
        failures = {o.index: o.error for o in self._finished() if not o.ok}
        is_collected = then == "collect"
        return {
            i: error if is_collected and i not in self._dropped else None
            for i, error in failures.items()
        }

    def _check(self) -> None:
        """Wait for the bodies at the end of their parent's. Raises: a failure not seen yet."""
        if self._group is not None and self._has_bodies:
            if self._is_seen:
                self._group.wait(len(self))
            else:
                self._settle(self._policy.then)

    def _end(self) -> None:
        """End the bodies, because their parent's has failed."""
        if self._group is not None:
            self._group.end()
