"""Whether an engine that owes answers still moves, as its heartbeats tell."""

from __future__ import annotations

import logging

WARN_S = 30.0
STUCK_S = 300.0  # one step of a large model on a slow machine may take a minute

_log = logging.getLogger("plait.serve")


class Progress:
    """Watch the step counter of one worker. Times are of the caller's clock, in seconds."""

    def __init__(self, stuck_s: float = STUCK_S) -> None:
        self._warn_s = min(WARN_S, stuck_s)
        self._stuck_s = stuck_s
        self._num_steps: int | None = None
        self._since_s: float | None = None  # since when it stands still; None while it does not
        self._has_warned = False

    def note_answer(self) -> None:
        """Take note of an answer: the worker moves, whatever its counter says."""
        self._since_s = None

    def check(self, num_steps: int, num_owed: int, now_s: float) -> str:
        """Take a heartbeat; give what is wrong, "" if nothing is.

        `num_owed` is how many segments wait for their end. A standstill of WARN_S is logged
        once, one of `stuck_s` is wrong.
        """
        if num_owed == 0 or num_steps != self._num_steps:
            self._num_steps, self._since_s, self._has_warned = num_steps, None, False
        if num_owed == 0:
            return ""
        if self._since_s is None:
            self._since_s = now_s
        still_s = now_s - self._since_s
        text = f"its engine has made no step for {still_s:.0f} s and owes {num_owed} answers"
        if still_s >= self._stuck_s:
            return f"{text}; it is stuck, restart it"
        if still_s >= self._warn_s and not self._has_warned:
            self._has_warned = True
            _log.warning("the runtime lives, but %s", text)
        return ""
