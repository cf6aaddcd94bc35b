"""The branches of one fork, and the values that a join gathers from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast, overload

from .errors import InvalidArgument, UnknownVariable
from .expr import Expr, expr_of, parts_of
from .ops import Source
from .where import place

if TYPE_CHECKING:
    from .driver import Driver
    from .state import State

Appended: TypeAlias = str | Expr
Broadcast: TypeAlias = Appended | Callable[[int], Appended] | Sequence[Appended]
Gathered: TypeAlias = tuple[Source | None, ...]  # the branches' values by index


def gather(branches: Sequence[Mapping[str, Source]]) -> dict[str, Gathered]:
    """Join what branches set: name -> source by branch index, None where one did not set it."""
    names = dict.fromkeys(name for own in branches for name in own)
    return {name: tuple(own.get(name) for own in branches) for name in names}


class Joined(Mapping[str, list[Any]]):
    """Name -> values by branch index, of every name that a branch set itself.

    The list has one place a branch. It holds None where a branch did not set the name,
    so that an index always means the same branch.
    """

    def __init__(self, driver: Driver, sources: Mapping[str, Gathered]) -> None:
        self._driver = driver
        self._sources = sources

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self._sources:
            known = ", ".join(self._sources) or "none"
            raise UnknownVariable(f'{place()}no branch set "{name}"; the branches set: {known}')
        found = self._sources[name]
        return [None if source is None else self._driver.value(source) for source in found]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def __repr__(self) -> str:
        return f"Joined({', '.join(self._sources)})"


class Forks(Sequence["State"]):
    """The branches of a fork by index.

    `forks += x` appends to each: one text or expression to all, a function of the
    branch's index, or a list with one item a branch.
    """

    def __init__(self, parent: State, branches: Sequence[State]) -> None:
        self._parent = parent
        self._branches = tuple(branches)

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

    def join(self) -> Joined:
        """Wait for all branches, and give what they set: name -> list by branch index.

        The parent's text and own variables stay as they are. Afterwards `s[name]` on the
        parent is the list, unless the parent has set the name itself; a later join replaces
        the lists of the same names. The branches stay usable.

        Raises: the first branch's failure, after cancelling the rest.
        """
        nodes_below = [n for branch in self._branches for n in branch._all_nodes()]
        self._parent._driver.wait(sorted(nodes_below))
        sources = gather([dict(branch._own) for branch in self._branches])
        self._parent._keep_joined(sources)
        return Joined(self._parent._driver, sources)
