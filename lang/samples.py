"""Several samples of one expression: branches that share what stands before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .errors import InvalidArgument
from .expr import Part
from .forks import gather
from .ops import Gen, Select
from .options import MAX_INT
from .where import place

if TYPE_CHECKING:
    from .state import State


def sample(state: State, parts: Sequence[Part], count: int) -> None:
    """Record an expression in `count` branches; its variables become lists by branch.

    The state's own text stays as it is: it goes on from none of the samples. A seed that the
    author gave counts up from branch to branch.

    Raises: InvalidArgument for a variable that the state has set itself; RoleError.
    """
    with state._lock:
        state._check(parts)
        for name in _names(parts):
            if name in state._own:
                raise InvalidArgument(
                    f'{place()}gen("{name}", n={count}): this branch has set "{name}" itself, and '
                    "its samples become a list; give them another name"
                )
        branches = state.fork(count)
        for i, branch in enumerate(branches):
            branch._append([_seeded(part, i) for part in parts])
        state._keep_joined(gather([dict(branch._own) for branch in branches]))


def _names(parts: Sequence[Part]) -> list[str]:
    found: list[str] = []
    for part in parts:
        if isinstance(part, Gen | Select) and part.name is not None:
            found.append(part.name)
        if isinstance(part, Gen):
            found += part.captures
    return found


def _seeded(part: Part, index: int) -> Part:
    if isinstance(part, Gen | Select) and part.seed is not None:
        return replace(part, seed=(part.seed + index) % (MAX_INT + 1))
    return part
