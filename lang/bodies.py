"""Bodies of branches: what a fork runs, and what has to end before a body's own end counts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from .branching import again, beginning_of, nodes_below
from .errors import InvalidArgument
from .where import place

if TYPE_CHECKING:
    from .forks import Forks
    from .state import State

Body: TypeAlias = Callable[..., object]


def complete(state: State, work: Callable[[], object]) -> object:
    """Run a body on `state`; its forks have ended when this returns or raises.

    Raises: what the body raises, after ending its branches; else the first failure of a
    branch that the body has not seen.
    """
    forks: list[Forks] = state._forks
    try:
        value = state._driver.drive(work())
        for fork in forks:
            fork._check()
    except BaseException:
        for fork in forks:
            fork._end()
        raise
    return value


def takes_index(body: object) -> bool:
    """Say whether a body asks for its index: it has a second parameter without a default.

    Raises: InvalidArgument for what cannot be called with a branch.
    """
    if not callable(body):
        raise InvalidArgument(f"{place()}fork(n, {body!r}): pass a function of the branch")
    required = getattr(body, "required", None)  # a program's signature leaves out its state
    if isinstance(required, tuple):
        return len(required) > 0
    try:
        parameters = inspect.signature(body).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return len(needed) > 1


class BranchBodies:
    """The bodies of one fork, each with its arguments; `branches` has the last attempt of each."""

    def __init__(
        self, branches: list[State], body: Body | None, arguments: Sequence[tuple[object, ...]]
    ) -> None:
        self._branches = branches
        self.body = body
        self._arguments = arguments
        self._all: list[list[State]] = [[branch] for branch in branches]
        self._starts = [beginning_of(branch) for branch in branches]

    def __len__(self) -> int:
        return len(self._branches)

    def path(self, index: int) -> str:
        """Give the path of a branch."""
        return self._all[index][0]._branch

    def run(self, index: int, attempt: int) -> object:
        """Run one body to its end, with all that it starts; after the first time afresh."""
        if attempt > 0:
            self._branches[index] = again(self._branches[index], self._starts[index])
            self._all[index].append(self._branches[index])
        branch = self._branches[index]
        body = self.body
        value = None
        if body is not None:
            value = complete(branch, lambda: body(branch, *self._arguments[index]))
        branch._driver.wait(nodes_below(branch, has_bodies=False))
        return value

    def nodes(self, index: int) -> list[int]:
        """Give all nodes of a branch, those of earlier attempts and branches below included."""
        return [
            node for branch in self._all[index] for node in nodes_below(branch, has_bodies=True)
        ]
