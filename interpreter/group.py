"""The bodies of one fork as tasks: started, run again, ended, and waited for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ..lang.driver import Bodies
from ..lang.errors import BackendError, Cancelled, PlaitError, ProgramError, TimedOut
from ..lang.outcomes import Outcome, failed
from .home import Signal, set_all
from .waiters import Abandoned

if TYPE_CHECKING:
    import asyncio

    from .driver import LiveDriver

# Once more would end in the same way: the program is wrong, or nobody is there to run it.
_HOPELESS = (ProgramError, BackendError)


class BranchGroup:
    """One task a branch, on the loop of the run. Used on the run's own thread alone."""

    def __init__(
        self, driver: LiveDriver, bodies: Bodies, times: int, timeout: float | None
    ) -> None:
        self._driver = driver
        self._bodies = bodies
        self._times = times
        self._timeout = timeout
        self._reasons: dict[int, Exception] = {}  # why a branch's task is being cancelled
        self._attempts: dict[int, int] = {}
        self._finished: list[Outcome] = []
        self._waiting: list[Signal] = []
        self._tasks = [self._start(i) for i in range(len(bodies))]

    @property
    def finished(self) -> Sequence[Outcome]:
        """Give the outcomes so far, in order of time."""
        return self._finished

    def wait(self, num: int, stops_at_failure: bool = False) -> None:
        """Wait until `num` have ended, or if `stops_at_failure` one has failed."""
        while len(self._finished) < num:
            if stops_at_failure and not all(outcome.ok for outcome in self._finished):
                return
            self._driver.check()
            self._pause()

    def cancel(self, indices: Sequence[int] | None = None) -> None:
        """End those that still run, all or some; does not wait for them."""
        for i in range(len(self._tasks)) if indices is None else indices:
            if not self._tasks[i].done():
                path = self._bodies.path(i)
                self._end_task(i, Cancelled(f"branch {path} was cancelled", code="cancelled"))

    def end(self) -> None:
        """End all, and wait for that whatever happens."""
        import asyncio

        self.cancel()
        last: BaseException | None = None
        while len(self._finished) < len(self._tasks):
            try:
                self._pause()
            except (asyncio.CancelledError, Abandoned) as error:
                last = error
        if last is not None:
            raise last

    def _start(self, index: int) -> asyncio.Task[Outcome]:
        return self._driver.home.start(
            partial(self._work, index), lambda task: self._settle(index, task)
        )

    def _work(self, index: int) -> Outcome:
        for attempt in range(self._times + 1):
            self._attempts[index] = attempt + 1
            try:
                value = self._attempt(index, attempt)
                return Outcome(self._bodies.path(index), index, value, num_attempts=attempt + 1)
            except Exception as error:
                self._release(index)
                if attempt == self._times or isinstance(error, _HOPELESS):
                    return self._failed(index, error)
        raise AssertionError("the last attempt returns")

    def _attempt(self, index: int, attempt: int) -> object:
        """Run a body once. Raises: TimedOut, and what the body raises."""
        import asyncio

        timer = None
        if self._timeout is not None:
            timer = self._driver.home.later(self._timeout, partial(self._expire, index))
        try:
            return self._bodies.run(index, attempt)
        except asyncio.CancelledError:
            reason = self._reasons.get(index)
            if not isinstance(reason, TimedOut):
                raise
            del self._reasons[index]
            self._tasks[index].uncancel()
            raise reason from None
        finally:
            if timer is not None:
                timer.cancel()

    def _expire(self, index: int) -> None:
        path = self._bodies.path(index)
        message = f"branch {path} took longer than its timeout of {self._timeout:g} s"
        self._end_task(index, TimedOut(message, code="timed_out"))

    def _end_task(self, index: int, reason: Exception) -> None:
        if index not in self._reasons or isinstance(reason, Cancelled):
            self._reasons[index] = reason
            self._tasks[index].cancel()

    def _settle(self, index: int, task: asyncio.Task[Outcome]) -> None:
        error: BaseException | None = None
        if not task.cancelled():
            error = task.exception()
        if task.cancelled() or error is not None:
            path = self._bodies.path(index)
            reason = self._reasons.get(index)
            if reason is None:
                reason = Cancelled(f"branch {path} ended with its run", code="cancelled")
                reason.__cause__ = error
            self._release(index)
            outcome = self._failed(index, reason)
        else:
            outcome = task.result()
        self._finished.append(outcome)
        woken, self._waiting = self._waiting, []
        set_all(woken)

    def _release(self, index: int) -> None:
        """Stop what the branch has asked for; whoever waits is told if that cannot be."""
        with suppress(Abandoned, PlaitError):
            self._driver.cancel(self._bodies.nodes(index))

    def _failed(self, index: int, error: Exception) -> Outcome:
        return failed(self._bodies.path(index), index, error, self._attempts.get(index, 0))

    def _pause(self) -> None:
        self._driver.home.loop()  # refuses threads on which a wait would hold up the tasks
        self._driver.flush_soon()
        signal = self._driver.home.signal()
        self._waiting.append(signal)
        signal.wait()
