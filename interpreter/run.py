"""One run of one program: open a session, run the body, wait for the rest, keep the result."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from ..lang.bodies import complete
from ..lang.errors import Cancelled
from ..lang.program import Program
from ..lang.state import State
from ..lang.tape import Tape
from . import tasks
from .backend import Backend, SessionConfig
from .defaults import default_backend, is_default_ready
from .driver import LiveDriver
from .exchange import Sink
from .home import Home
from .options import Options
from .result import Result
from .waiters import Abandoned


@contextmanager
def journaling(options: Options, program: str) -> Iterator[Options]:
    """Open the journal of a run; inside, the options' backend is one that keeps it.

    Without a seed the run draws from that of the journal's last one.

    Raises: JournalError.
    """
    if options.journal is None:
        yield options
        return
    from .journal import opened
    from .journaled import journaled

    with opened(options.journal) as journal:
        last = journal.last_run
        seed = last.seed if options.seed is None and last is not None else options.seed
        options = replace(options, journal=None, seed=seed).with_seed()
        assert options.seed is not None
        backend = None if journal.is_replay else choose_backend(options.backend)
        yield replace(options, backend=journaled(journal, backend, program, options.seed))


@dataclass(frozen=True, slots=True)
class Call:
    """A program with its arguments and options: all that a run needs."""

    program: Program
    arguments: Mapping[str, object]
    options: Options


class Run:
    """One run of a call. `execute` once, on the thread or loop that waits for it."""

    def __init__(
        self,
        call: Call,
        *,
        is_streaming: bool = False,
        sink: Sink | None = None,
    ) -> None:
        options = call.options.with_seed()
        assert options.seed is not None
        self.tape = Tape()
        self.driver: LiveDriver | None = None
        self._call = call
        self._config = SessionConfig(
            os.urandom(8).hex(), options.seed, options.sampling, is_streaming
        )
        self._sink = sink
        self._is_abandoned = False
        self._cancel_loop: tasks.Cancel | None = None
        self._home: Home | None = None

    def execute(self) -> Result:
        """Run to the end from plain code; a failure is in the result, not raised."""
        if not self._call.program.is_async or tasks.in_body():
            return self._run()
        return tasks.run_here(self._spawn, self._keep_cancel)

    async def aexecute(self) -> Result:
        """Run to the end on the running loop; a failure is in the result, not raised."""
        return await self._spawn()

    def abandon(self) -> None:
        """Stop the requests, and unwind the body at its next wait. From any thread."""
        self._is_abandoned = True
        if self.driver is not None:
            self.driver.abandon()
            if self.driver.home.is_private:
                self.driver.home.interrupt()
        if self._cancel_loop is not None:
            self._cancel_loop()

    def _spawn(self) -> Coroutine[Any, Any, Result]:
        return tasks.spawn(self._run, adopts_tasks=self._call.program.is_async)

    def _keep_cancel(self, cancel: tasks.Cancel) -> None:
        self._cancel_loop = cancel

    def _run(self) -> Result:
        try:
            with journaling(self._call.options, self._call.program.name) as options:
                return self._result(value=self._complete(options))
        except Abandoned:
            error = Cancelled(f"{self._call.program.name}: its stream was closed", code="cancelled")
            return self._result(error=error)
        except Exception as error:
            return self._result(error=error)
        finally:
            self.tape.close()
            if self.driver is not None:
                self.driver.close()
            if self._home is not None:
                self._home.close()

    def _complete(self, options: Options) -> object:
        if options.seed is not None:
            self._config = replace(self._config, seed=options.seed)
        backend = choose_backend(options.backend)
        home = self._home = Home()
        self.driver = driver = LiveDriver(self.tape, backend, self._config, self._sink, home)
        if self._is_abandoned:
            raise Abandoned
        state = State(self.tape, driver)
        value = complete(state, lambda: self._body(state))
        driver.finish()
        return value

    def _body(self, state: State) -> object:
        value = self._call.program.body(state, **self._call.arguments)
        if self._call.program.is_async:
            return tasks.drive(cast("Coroutine[Any, Any, object]", value))
        return value

    def _result(self, value: object = None, error: Exception | None = None) -> Result:
        name, seed = self._call.program.name, self._config.seed
        return Result(name, self.tape, self.driver, seed=seed, value=value, error=error)


def choose_backend(given: Backend | None) -> Backend:
    """Give the backend of a run: the one given, else the default, which may have to start.

    On a loop the start takes place in a thread, so that it holds up nobody else.
    """
    if given is not None:
        return given
    if is_default_ready() or not tasks.in_body():
        return default_backend()
    import asyncio

    return tasks.await_only(asyncio.to_thread(default_backend))
