"""How the body of a branch ended, as a value; and what to do with those that failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from .errors import InvalidArgument, NodeError
from .graph import Where
from .where import place, raised_at

Then: TypeAlias = Literal["raise", "skip", "collect"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one branch: its body's value, or the error that ended it.

    `branch` is its path and `index` its place in the fork; `where` is the author's line that the
    error came from, whose `__cause__` is its cause. `num_attempts` counts how often it ran.
    """

    branch: str
    index: int
    value: Any = None
    error: Exception | None = None
    where: Where | None = None
    num_attempts: int = 1

    @property
    def ok(self) -> bool:
        """Say whether the body came to its end."""
        return self.error is None

    def get(self) -> Any:
        """Give the value. Raises: the error, if there is one."""
        if self.error is not None:
            raise self.error
        return self.value


def failed(branch: str, index: int, error: Exception, num_attempts: int) -> Outcome:
    """Give the outcome of a branch that an error ended; the error says so in a note."""
    where = error.where if isinstance(error, NodeError) else raised_at(error.__traceback__)
    at = "" if where is None else f", {where}"
    note = f"in branch {branch}{at}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return Outcome(branch, index, None, error, where, num_attempts)


@dataclass(frozen=True, slots=True)
class Retry:
    """Run what failed again, up to `times` times; `then` says what follows if all fail."""

    times: int
    then: Then = "raise"


OnError: TypeAlias = Then | Retry
_THEN: tuple[Then, ...] = get_args(Then)


def retry(times: int, then: Then = "raise") -> Retry:
    """Give the policy that runs again what failed, with draws of its own each time.

    Args:
        times: How often, after the first time.
        then: What follows when all attempts have failed: "raise", "skip" or "collect".

    Raises: InvalidArgument.
    """
    if isinstance(times, bool) or not isinstance(times, int) or times < 0:
        raise InvalidArgument(f"{place()}retry({times!r}): pass a whole number, 0 or more")
    if then not in _THEN:
        raise InvalidArgument(f"{place()}retry(then={then!r}): pass one of {', '.join(_THEN)}")
    return Retry(times, then)


def policy_of(value: object, what: str) -> Retry:
    """Give a policy as the `Retry` that it is. Raises: InvalidArgument, naming `what`."""
    if isinstance(value, Retry):
        return retry(value.times, value.then)
    if value not in _THEN:
        raise InvalidArgument(
            f"{place()}{what}(on_error={value!r}): pass one of {', '.join(_THEN)}, or retry(n)"
        )
    return Retry(0, value)


def limit_of(value: object, what: str) -> float | None:
    """Give a time limit in seconds, None for none. Raises: InvalidArgument, naming `what`."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise InvalidArgument(f"{place()}{what}(timeout={value!r}): pass seconds, more than 0")
    return float(value)
