"""How much time and size one grammar may take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NoReturn

from ..errors import RequestError


class Budget:
    """Counts what a compilation uses, in states and in seconds of this thread's own time."""

    def __init__(self, timeout_s: float, max_states: int) -> None:
        self._timeout_s = timeout_s
        self._max_states = max_states
        self._num_states = 0
        self._start_s = time.thread_time()
        self.pause: Callable[[], None] | None = None  # lets others have what this one holds

    def spend(self, num_states: int, what: str) -> None:
        """Count `num_states` more for `what`.

        Raises: RequestError (grammar_budget), naming the limit and `what`.
        """
        self._num_states += num_states
        if self._num_states > self._max_states:
            limit = f"more than {self._max_states} states (grammar_max_states)"
            raise RequestError("grammar_budget", f"grammar too large: {what} needs {limit}")
        if self._num_states & 31 == 1:  # reading the clock costs more than most states
            self.check_time(what)

    def refuse(self, reason: str) -> NoReturn:
        """Raise RequestError (grammar_budget) for `reason`."""
        raise RequestError("grammar_budget", f"grammar too large: {reason}")

    def check_time(self, what: str) -> None:
        """Raise RequestError (grammar_budget) once the time is over."""
        if self.pause is not None:
            self.pause()
        if time.thread_time() - self._start_s > self._timeout_s:
            message = f"grammar too large: {what} takes more than {self._timeout_s:g} s"
            raise RequestError("grammar_budget", message)
