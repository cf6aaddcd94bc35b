"""Bodies of branches without a loop: one after the other, at once."""

from __future__ import annotations

from collections.abc import Sequence

from .driver import Bodies
from .outcomes import Outcome


class InlineGroup:
    """The bodies of one fork, run to their ends in order. What one raises goes to the caller."""

    def __init__(self, bodies: Bodies) -> None:
        self._finished = [Outcome(bodies.path(i), i, bodies.run(i, 0)) for i in range(len(bodies))]

    @property
    def finished(self) -> Sequence[Outcome]:
        """Give the outcomes."""
        return self._finished

    def wait(self, num: int, stops_at_failure: bool = False) -> None:
        """Do nothing: all have ended."""

    def cancel(self, indices: Sequence[int] | None = None) -> None:
        """Do nothing: all have ended."""

    def end(self) -> None:
        """Do nothing: all have ended."""
