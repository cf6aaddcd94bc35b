"""Those who wait for the nodes of one run, and whom an outcome wakes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .backend import Failed
from .failures import Outcome
from .home import Signal, set_all


class Abandoned(BaseException):
    """Unwinds a body whose run was given up; no `except Exception` of an author stops it."""


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who waits until `missing` is empty, or until any of the nodes fails."""

    missing: set[int]
    stops_at_failure: bool
    signal: Signal


class Waiters:
    """The waiters of one run. Its owner holds a lock at every call, and wakes whom it is given."""

    def __init__(self) -> None:
        self._live: dict[Waiter, None] = {}  # who waits longest is first
        self._by_node: dict[int, list[Waiter]] = {}  # also those who wait no more

    def add(self, waiter: Waiter) -> None:
        """Let somebody wait."""
        self._live[waiter] = None
        for node in waiter.missing:
            self._by_node.setdefault(node, []).append(waiter)

    def discard(self, waiter: Waiter) -> None:
        """Forget one who waits no more."""
        self._live.pop(waiter, None)

    def settle(self, outcome: Outcome) -> list[Waiter]:
        """Take the waiters whose wait this outcome ends."""
        ended: list[Waiter] = []
        for waiter in self._by_node.pop(outcome.node, ()):
            waiter.missing.discard(outcome.node)
            has_failed = waiter.stops_at_failure and isinstance(outcome, Failed)
            if waiter in self._live and (has_failed or not waiter.missing):
                del self._live[waiter]
                ended.append(waiter)
        return ended

    def take_one(self) -> list[Waiter]:
        """Take the one who waits longest, if anybody does: there is work for one."""
        waiter = next(iter(self._live), None)
        if waiter is None:
            return []
        del self._live[waiter]
        return [waiter]

    def take_all(self) -> list[Waiter]:
        """Take all: nothing more will come."""
        taken, self._live = list(self._live), {}
        return taken


def wake(waiters: Iterable[Waiter]) -> None:
    """Let them go on; from any thread, with no lock held."""
    set_all(waiter.signal for waiter in waiters)
