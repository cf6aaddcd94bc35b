"""What one client of a worker may use, and the count of those who tried more."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass

_log = logging.getLogger("plait.serve")


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits of each client, and when it counts as gone.

    A client that disconnects is noticed by libzmq at the next heartbeat; `silence_s`
    catches one that is connected but says nothing.
    """

    credits: int = 1024  # unfinished segments
    credit_bytes: int = 256 * 2**20
    sessions: int = 65_536
    clients: int = 1024
    outbox_bytes: int = 64 * 2**20  # answers that a client has yet to read
    heartbeat_s: float = 0.25
    silence_s: float = 30.0


class Tally:
    """Counts misdeeds, and logs the first of each kind only: nobody can flood the log."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, kind: str, text: str) -> None:
        """Count one more of `kind`."""
        self.counts[kind] += 1
        if self.counts[kind] == 1:
            _log.warning("%s (further ones are only counted)", text)
