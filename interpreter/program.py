"""Programs that run: `@function`, and the ways to call what it gives.

What runs them is imported where it is used: it is half of what `import plait` would cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ..lang.program import Program
from . import tasks
from .options import OPTION_NAMES, Options

if TYPE_CHECKING:
    from .result import Result
    from .run import Call, Run
    from .stream import AsyncStream, Stream

MAX_IN_FLIGHT = 256


class Function(Program):
    """A program with the ways to run it.

    `run`, `stream` and their async twins take the program's arguments by position and name,
    and the options of `options` by name. A name that is both is the program's: give the
    option through `options` then, as in `f.options(temperature=0).run(temperature="hot")`.
    """

    def __init__(self, fn: Callable[..., object]) -> None:
        super().__init__(fn)
        self._options = Options()

    @property
    def run_options(self) -> Options:
        """Give the run options set so far."""
        return self._options

    def options(self, **options: object) -> Function:
        """Give a copy with run options set; None leaves one as it is.

        They are `backend`, `seed`, `journal` (the path of a file, or what `plait.journal` gives:
        what a run before has finished is not run again), and what every gen takes unless it
        says otherwise: `max_tokens`, `min_tokens`, `stop`, `temperature`, `top_k`, `top_p`,
        `min_p`, `ignore_eos`, `heal`, `keep_stop`.

        Raises: InvalidArgument for an unknown name or a value without meaning.
        """
        chosen = self._clone(self._fn)
        chosen._options = self._options.updated(options)
        chosen._recipe = (_with_options, (self, options))
        return chosen

    def run(self, /, *args: object, **kwargs: object) -> Result:
        """Run once and give the finished result.

        The body runs in the caller's thread. Without a seed the run draws a fresh one, and
        keeps it in `Result.seed`.

        Raises: what the body raised; else the NodeError of the first failure that the body
        has not handled; BackendError.
        """
        result = self._run(args, kwargs).execute()
        result.check()
        return result

    async def arun(self, /, *args: object, **kwargs: object) -> Result:
        """Run once on the running loop; as `run`. Cancelling it stops its requests."""
        result = await self._run(args, kwargs).aexecute()
        result.check()
        return result

    def run_batch(
        self, rows: Iterable[object], /, *, max_in_flight: int = MAX_IN_FLIGHT, **options: object
    ) -> list[Result]:
        """Run once a row, up to `max_in_flight` at the same time; results are in order.

        A row is a dict of arguments by name, or a tuple of them. One that fails has its
        error in its own result (`Result.ok`, `Result.error`). A row's seed follows from
        the batch's seed and the row's index, and row 0 has the batch's own. The bodies share
        one thread: one that is busy in its own code holds up the others.

        Raises: InvalidArgument for wrong options; BackendError if no backend can start.
        """
        from .batch import check_rows, run_rows

        check_rows(rows, max_in_flight)
        chosen = self._options.updated(options)
        return tasks.run_here(lambda: run_rows(self, rows, chosen, max_in_flight))

    async def arun_batch(
        self, rows: Iterable[object], /, *, max_in_flight: int = MAX_IN_FLIGHT, **options: object
    ) -> list[Result]:
        """Run once a row on the running loop; as `run_batch`."""
        from .batch import check_rows, run_rows

        check_rows(rows, max_in_flight)
        return await run_rows(self, rows, self._options.updated(options), max_in_flight)

    def stream(self, /, *args: object, **kwargs: object) -> Stream:
        """Give the events of one run as they happen; see `Stream`.

        Raises: InvalidArgument at once for wrong arguments.
        """
        from .stream import Stream

        return Stream(self._call(args, kwargs))

    def astream(self, /, *args: object, **kwargs: object) -> AsyncStream:
        """Give the events of one run as they happen, on the running loop; see `AsyncStream`.

        Raises: InvalidArgument at once for wrong arguments.
        """
        from .stream import AsyncStream

        return AsyncStream(self._call(args, kwargs))

    def _run(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Run:
        from .run import Run

        return Run(self._call(args, kwargs))

    def _call(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Call:
        from .run import Call

        own = set(self.parameters)
        options = {k: v for k, v in kwargs.items() if k in OPTION_NAMES and k not in own}
        arguments = {k: v for k, v in kwargs.items() if k not in options}
        matched = self.arguments(args, arguments, OPTION_NAMES)
        return Call(self, matched, self._options.updated(options))


def _with_options(program: Function, options: Mapping[str, object]) -> Function:
    return program.options(**options)


def function(fn: Callable[..., object]) -> Function:
    """Make a function, sync or async, a program; its first parameter is the state."""
    return Function(fn)
