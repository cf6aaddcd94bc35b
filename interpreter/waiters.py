"""Those who wait for the nodes of one run, and whom an outcome wakes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .backend import Failed
from .failures import Outcome
from .tasks import Signal


class Abandoned(BaseException):
    """Unwinds a body whose run was given up; no `except Exception` of an author stops it."""


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who waits until `missing` is empty, or until any of the nodes fails."""

    missing: set[int]
    stops_at_failure: bool
    signal: Signal = field(default_factory=Signal)


class Waiters:
    """The waiters of one run. Its owner holds a lock at every call, and wakes whom it is given.

    A signal belongs to whoever waits, so a waiter is added on the thread that will wait.
    """

    def __init__(self) -> None:
        self._waiters: list[Waiter] = []

    def add(self, missing: Iterable[int], stops_at_failure: bool) -> Waiter:
        """Give a new waiter."""
        waiter = Waiter(set(missing), stops_at_failure)
        self._waiters.append(waiter)
        return waiter

    def discard(self, waiter: Waiter) -> None:
        """Forget one who waits no more."""
        self._waiters = [other for other in self._waiters if other is not waiter]

    def settle(self, outcome: Outcome) -> list[Waiter]:
        """Take the waiters whose wait this outcome ends."""
        ended: list[Waiter] = []
        for waiter in self._waiters:
            if outcome.node in waiter.missing:
                waiter.missing.discard(outcome.node)
                has_failed = waiter.stops_at_failure and isinstance(outcome, Failed)
                if has_failed or not waiter.missing:
                    ended.append(waiter)
        if ended:
            self._waiters = [waiter for waiter in self._waiters if waiter not in ended]
        return ended

    def take_one(self) -> list[Waiter]:
        """Take the one who waits longest, if anybody does: there is work for one."""
        taken, self._waiters = self._waiters[:1], self._waiters[1:]
        return taken

    def take_all(self) -> list[Waiter]:
        """Take all: nothing more will come."""
        taken, self._waiters = self._waiters, []
        return taken


def wake(waiters: Iterable[Waiter]) -> None:
    """Let them go on; from any thread, with no lock held."""
    for waiter in waiters:
        waiter.signal.set()
