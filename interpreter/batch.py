"""Many runs of one program on one loop: a window of rows in flight, results in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from typing import cast

from ..lang.errors import InvalidArgument
from ..lang.program import Program
from ..lang.tape import Tape
from . import tasks
from .options import Options
from .result import Result
from .run import Call, Run, choose_backend, journaling


async def run_rows(
    program: Program, rows: Iterable[object], options: Options, max_in_flight: int
) -> list[Result]:
    """Run the program once a row; a row's fault is in its own result.

    Rows are taken, and their sessions opened, only as the window has room. What the
    iterable itself raises ends the batch.
    """
    import asyncio

    results: dict[int, Result] = {}
    numbered: Iterator[tuple[int, object]] = enumerate(rows)
    first = next(numbered, None)
    if first is None:
        return []
    numbered = chain((first,), numbered)

    async def work(own: Iterator[tuple[int, object]], options: Options) -> None:
        for i, row in own:
            results[i] = await _run_row(program, row, options.for_row(i))

    with ExitStack() as stack:
        entering = stack.enter_context
        options = await tasks.spawn(lambda: entering(journaling(options, program.name)))
        backend = await tasks.spawn(lambda: choose_backend(options.backend))
        options = replace(options, backend=backend).with_seed()
        workers = [
            asyncio.ensure_future(work(numbered, options))
            for _ in range(_window(rows, max_in_flight))
        ]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
    return [results[i] for i in range(len(results))]


async def _run_row(program: Program, row: object, options: Options) -> Result:
    try:
        arguments = _arguments(program, row)
    except Exception as error:
        assert options.seed is not None
        return Result(program.name, Tape(), None, seed=options.seed, error=error)
    return await Run(Call(program, arguments, options)).aexecute()


def _arguments(program: Program, row: object) -> dict[str, object]:
    if isinstance(row, Mapping):
        return program.arguments((), cast("Mapping[str, object]", row))
    if isinstance(row, tuple):
        return program.arguments(cast("tuple[object, ...]", row))
    raise InvalidArgument(
        f"a row of run_batch is a dict of arguments, or a tuple of them in order; "
        f"this one is {type(row).__name__}"
    )


def check_rows(rows: object, max_in_flight: int) -> None:
    """Refuse what no batch can be made of. Raises: InvalidArgument."""
    if isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        raise InvalidArgument(
            f"run_batch({type(rows).__name__}): pass a list, or another iterable, of rows; "
            "each is a dict or a tuple"
        )
    if isinstance(max_in_flight, bool) or not isinstance(max_in_flight, int) or max_in_flight < 1:
        raise InvalidArgument(f"max_in_flight={max_in_flight!r}: pass a whole number, 1 or more")


def _window(rows: Iterable[object], max_in_flight: int) -> int:
    return min(max_in_flight, len(rows)) if isinstance(rows, list | tuple) else max_in_flight
