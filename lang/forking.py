"""What a state's `fork`, `map` and `call` do once their arguments are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from .bodies import Body, BranchBodies, complete, takes_index
from .branching import child_of, fork_path
from .errors import InvalidArgument
from .forks import Forks
from .ops import Text
from .outcomes import OnError, Retry, limit_of, policy_of
from .recorder import NOTHING
from .standin import stop
from .where import caller, place

if TYPE_CHECKING:
    from .program import Program
    from .state import State


def fork(
    state: State, n: int, body: Body | None, on_error: OnError, timeout: float | None
) -> Forks:
    """Fork `n` branches, with a body each or none. Raises: InvalidArgument."""
    stop(n, "the number of branches needs the value")
    if isinstance(n, bool) or not isinstance(n, int):
        raise InvalidArgument(f"{place()}fork({n!r}): pass a whole number, n >= 1")
    if n < 1:
        raise InvalidArgument(f"{place()}fork({n}): a fork needs at least one branch; pass n >= 1")
    if body is None and timeout is not None:
        raise InvalidArgument(f"{place()}fork({n}, timeout=...): a time limit is for a body")
    has_index = body is not None and takes_index(body)
    arguments = [(i,) if has_index else () for i in range(n)]
    return branch_out(
        state, arguments, body, policy_of(on_error, "fork"), limit_of(timeout, "fork")
    )


def branch_out(
    state: State,
    arguments: Sequence[tuple[object, ...]],
    body: Body | None,
    policy: Retry,
    timeout: float | None,
) -> Forks:
    """Fork a branch for each of `arguments`, which are its body's."""
    branches: list[State] = []
    if arguments:
        with state._lock:
            path = fork_path(state, len(arguments), is_concurrent=body is not None)
            inherited = MappingProxyType(state._visible())
            branches = [child_of(state, f"{path}.{i}", inherited) for i in range(len(arguments))]
            state._children += branches
    bodies = BranchBodies(branches, body, arguments)
    forks = Forks(state, branches, bodies, policy, timeout)
    for i, branch in enumerate(branches):
        branch._forked_by = forks, i
        if body is not None:
            branch._has_body = True
            branch._forks = []  # what a body forks ends with that body
    state._forks.append(forks)
    return forks


def call(state: State, program: Program, arguments: Mapping[str, object], keep: bool) -> object:
    """Run a program on a branch of its own, and perhaps go on after its text."""
    with state._lock:
        child = child_of(state, f"{fork_path(state, 1, 'call')}.0", NOTHING)
        child._forks = []
        state._children.append(child)
    value = complete(child, lambda: program.body(child, **arguments))
    if keep:
        _go_on_after(state, child)
    return value


def _go_on_after(state: State, child: State) -> None:
    """Let the text of a nested program be this branch's, which has a node after it."""
    with state._lock:
        if child._tip != state._tip:
            state._tip, state._turn = child._tip, child._turn
            state._record(Text(""), (), caller())
