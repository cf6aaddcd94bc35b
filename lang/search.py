"""Search over sub-programs: the best of several, and a beam. Made of fork and score alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from .errors import InvalidArgument
from .options import whole, wrong
from .scores import LogProb
from .state import State
from .where import place

Body: TypeAlias = Callable[[State], object]
# A variable, whose log-probability counts; or what a branch is worth.
Worth: TypeAlias = str | Callable[[State], float | LogProb]


def best_of(s: State, n: int, body: Body, *, score: Worth) -> State:
    """Run `body` in `n` branches of `s`, and give the branch that is worth most.

    `score` is the name of a variable: the log-probability of what its gen wrote; or a function
    of the branch, which gives a number, or a LogProb for all branches to be scored at once. Of
    equals the first is taken. The text of `s` stays as it is: go on with the branch, or append
    what you take from it.

    Raises: InvalidArgument; what the body or a node raises.
    """
    count = _count("best_of", "n", n)
    branches = list(s.fork(count))
    for branch in branches:  # all are recorded before one is waited for
        body(branch)
    worths = _worths(branches, score)
    return branches[max(range(count), key=worths.__getitem__)]


def beam(
    s: State,
    width: int,
    depth: int,
    body: Body,
    *,
    score: Worth,
    expand: int | None = None,
    is_done: Callable[[State], bool] | None = None,
) -> list[State]:
    """Grow branches step by step: give the `width` best after `depth` steps, the best first.

    A step runs `body` in `expand` branches (`width`, unless given) of each state that is left,
    and keeps the best. `score` is as in `best_of`; the log-probabilities of a variable add up
    from step to step, a function is asked about the whole branch each time. A branch for which
    `is_done` holds grows no further, and stays among the others as long as it is good enough.

    Raises: InvalidArgument; what the body or a node raises.
    """
    num_kept = _count("beam", "width", width)
    num_branches = num_kept if expand is None else _count("beam", "expand", expand)
    beams = [_Beam(s, 0.0)]
    for _ in range(_count("beam", "depth", depth)):
        finished = [each for each in beams if each.is_finished]
        grown = _grown([each for each in beams if not each.is_finished], num_branches, body, score)
        beams = sorted(finished + grown, key=lambda each: -each.worth)[:num_kept]
        for each in beams:
            each.is_finished = is_done is not None and is_done(each.state)
        if all(each.is_finished for each in beams):
            break
    return [each.state for each in beams]


class _Beam:
    """A state that was kept; `worth` is its own and, of a variable, that of all before it."""

    def __init__(self, state: State, worth: float) -> None:
        self.state = state
        self.worth = worth
        self.is_finished = False


def _grown(beams: Sequence[_Beam], num_branches: int, body: Body, score: Worth) -> list[_Beam]:
    """Give every branch that some beams grow in one step."""
    pairs = [(each, branch) for each in beams for branch in each.state.fork(num_branches)]
    for _, branch in pairs:
        body(branch)
    worths = _worths([branch for _, branch in pairs], score)
    return [
        _Beam(branch, worth + (before.worth if isinstance(score, str) else 0.0))
        for (before, branch), worth in zip(pairs, worths, strict=True)
    ]


def _worths(branches: Sequence[State], score: Worth) -> list[float]:
    """Give what branches are worth; all scores are asked for before one is waited for."""
    asked = [
        branch.log_prob(score) if isinstance(score, str) else score(branch) for branch in branches
    ]
    return [float(each) for each in asked]


def _count(call: str, name: str, value: object) -> int:
    try:
        count = whole(name, value, 1, "1 or more")
        if count is None:
            raise wrong(name, value, "1 or more")
    except InvalidArgument as error:
        raise InvalidArgument(f"{place()}{call}(...): {error}") from None
    return count
