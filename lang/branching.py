"""How branches hang together: where one begins, its children, the nodes under it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from .graph import ForkKind
from .where import caller

if TYPE_CHECKING:
    from .ops import Role
    from .recorder import Variable
    from .state import State

# Where a branch begins: its tip, its open turn, and the variables that it inherits.
Beginning: TypeAlias = "tuple[int | None, tuple[Role, int] | None, Mapping[str, Variable]]"


def beginning_of(state: State) -> Beginning:
    """Give where a branch is now: for one that has recorded nothing, where it begins."""
    return state._tip, state._turn, state._inherited


def child_of(state: State, branch: str, inherited: Mapping[str, Variable]) -> State:
    """Give a branch of the path `branch` that goes on from here."""
    child = type(state)(state._tape, state._driver, branch)
    child._tip, child._turn, child._inherited = state._tip, state._turn, inherited
    child._forks = state._forks
    return child


def again(state: State, beginning: Beginning) -> State:
    """Give the branch of a new attempt, which begins where this branch began."""
    with state._lock:
        child = child_of(state, f"{fork_path(state, 1, 'retry', True)}.0", state._inherited)
        child._tip, child._turn, child._inherited = beginning
        child._forked_by, child._forks, child._has_body = state._forked_by, [], True
        state._children.append(child)
        return child


def fork_path(
    state: State, width: int, kind: ForkKind = "fork", is_concurrent: bool = False
) -> str:
    """Record a fork of so many branches, and give its path."""
    prefix = f"{state._branch}/" if state._branch else ""
    path = f"{prefix}{state._num_forks}"
    at = len(state._nodes)
    state._tape.fork(path, width, caller(), kind=kind, place=at, is_concurrent=is_concurrent)
    state._num_forks += 1
    return path


def nodes_below(state: State, *, has_bodies: bool = True) -> list[int]:
    """Give the nodes of this branch and those under it; perhaps without those with bodies.

    What becomes of a branch with a body is its fork's to tell.
    """
    nodes: list[int] = []
    pending = [state]
    while pending:
        branch = pending.pop()
        nodes += branch._nodes
        pending += [c for c in branch._children if has_bodies or not c._has_body]
    return nodes
