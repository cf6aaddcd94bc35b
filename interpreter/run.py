"""One run of one program: open a session, run the body, wait for the rest, keep the result."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, cast

from ..lang.check import check
from ..lang.errors import Cancelled, InvalidArgument
from ..lang.graph import Graph
from ..lang.ops import Input, Op, Sampling, Text
from ..lang.options import refuse_unknown, seed_of, text
from ..lang.options import sampling as check_sampling
from ..lang.program import Program
from ..lang.state import State
from ..lang.tape import Tape
from ..lang.where import place
from . import tasks
from .backend import Backend, SessionConfig
from .defaults import checked_backend, default_backend, is_default_ready
from .driver import LiveDriver, Sink
from .result import Result
from .seeds import fresh_seed, row_seed
from .waiters import Abandoned

if TYPE_CHECKING:
    from .journal import Journal

SAMPLING_NAMES = tuple(field.name for field in fields(Sampling))
OPTION_NAMES = ("backend", "seed", "journal", *SAMPLING_NAMES)


@dataclass(frozen=True, slots=True)
class Options:
    """How programs run: where, from which seed, and the sampling that gens inherit.

    `journal` is one that is open, or the path of one to open for each run.
    """

    backend: Backend | None = None
    seed: int | None = None
    sampling: Sampling = Sampling()
    journal: Journal | str | os.PathLike[str] | None = None

    def updated(self, given: Mapping[str, object]) -> Options:
        """Give these options with some replaced; None leaves one as it is.

        Raises: InvalidArgument for an unknown name or a value without meaning.
        """
        refuse_unknown(given, OPTION_NAMES)
        new = {name: value for name, value in given.items() if value is not None}
        backend = checked_backend(new.pop("backend")) if "backend" in new else self.backend
        seed = seed_of(new.pop("seed", self.seed))
        journal = checked_journal(new.pop("journal", self.journal))
        checked = check_sampling(**cast("dict[str, Any]", new))
        return Options(backend, seed, _over(checked, self.sampling), journal)

    def with_seed(self) -> Options:
        """Give these options with a seed: a fresh random one if none is set."""
        if self.seed is not None:
            return self
        return replace(self, seed=fresh_seed())

    def for_row(self, row: int) -> Options:
        """Give the options of one row of a batch, which needs a seed.

        A run with `result.seed` repeats any row.
        """
        assert self.seed is not None
        return replace(self, seed=row_seed(self.seed, row))


def checked_journal(value: object) -> Journal | str | os.PathLike[str] | None:
    """Check an optional journal. Raises: InvalidArgument."""
    if value is None:
        return None
    from .journal import Journal

    if isinstance(value, Journal | str | os.PathLike):
        return cast("Journal | str | os.PathLike[str] | None", value)
    raise InvalidArgument(f"journal={value!r}: pass the path of a file, or plait.journal(path)")


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


def _over(new: Sampling, old: Sampling) -> Sampling:
    given = {name: getattr(new, name) for name in SAMPLING_NAMES}
    return replace(old, **{name: value for name, value in given.items() if value is not None})


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

    def _complete(self, options: Options) -> object:
        if options.seed is not None:
            self._config = replace(self._config, seed=options.seed)
        backend = choose_backend(options.backend)
        self.driver = driver = LiveDriver(self.tape, backend, self._config, self._sink)
        if self._is_abandoned:
            raise Abandoned
        value = self._call.program.body(State(self.tape, driver), **self._call.arguments)
        if self._call.program.is_async:
            value = tasks.drive(cast("Coroutine[Any, Any, object]", value))
        driver.finish()
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


def run_graph(
    graph: Graph, *, inputs: Mapping[str, object] | None = None, **options: object
) -> Result:
    """Submit a whole graph in one segment, and wait for it.

    `options` are those of `Function.options`: backend, seed and sampling. With the same
    seed the result is that of the program's own run, breaks or not. The body is not run:
    `Result.value` is None.

    Raises: InvalidArgument for a graph whose trace had to stop, and for inputs that are
    missing or unknown; else as `Function.run`.
    """
    given = Options().updated(options)
    _check_graph(cast(object, graph))
    tape = _taped(graph, _checked_inputs(graph, {} if inputs is None else inputs))
    with journaling(given, graph.program) as options_now:
        chosen = options_now.with_seed()
        assert chosen.seed is not None
        config = SessionConfig(os.urandom(8).hex(), chosen.seed, chosen.sampling)
        driver = LiveDriver(tape, choose_backend(chosen.backend), config)
        try:
            driver.finish()
        finally:
            tape.close()
            driver.close()
    return Result(graph.program, tape, driver, seed=chosen.seed)


def _check_graph(graph: object) -> None:
    if not isinstance(graph, Graph):
        name = graph.name if isinstance(graph, Program) else "f"
        raise InvalidArgument(
            f"{place()}run_graph({type(graph).__name__}): pass a graph, such as "
            f"{name}.trace() or result.graph"
        )
    problems = check(graph)
    if problems:
        raise InvalidArgument(f"the graph of {graph.program} breaks a rule: {problems[0]}")
    if graph.is_complete:
        return
    breaks = "; ".join(f"{stop.where}: {stop.name}: {stop.reason}" for stop in graph.breaks)
    raise InvalidArgument(
        f"the graph of {graph.program} is not complete, its trace needed a value at {breaks}; "
        "call the program's run instead"
    )


def _checked_inputs(graph: Graph, inputs: Mapping[str, object]) -> Mapping[str, str]:
    if not isinstance(cast(object, inputs), Mapping):
        raise InvalidArgument(
            f"inputs={inputs!r}: pass a dict of the values by name, inputs={{name: value}}"
        )
    used = [node.op.name for node in graph.nodes if isinstance(node.op, Input)]
    known = dict.fromkeys([*graph.inputs, *used])
    missing = [name for name in dict.fromkeys(used) if name not in inputs]
    unknown = [name for name in inputs if name not in known]
    if missing or unknown:
        faults = [f"missing {', '.join(missing)}"] if missing else []
        faults += [f"unknown {', '.join(unknown)}"] if unknown else []
        values = ", ".join(f'"{name}": ...' for name in known)
        remedy = f"pass inputs={{{values}}}" if known else "leave `inputs` out"
        raise InvalidArgument(
            f"inputs of {graph.program}: {', '.join(faults)}; "
            f"it takes {', '.join(known) or 'none'}: {remedy}"
        )
    return {name: text(f"inputs[{name!r}]", str(value)) for name, value in inputs.items()}


def _taped(graph: Graph, inputs: Mapping[str, str]) -> Tape:
    tape = Tape()
    for node in graph.nodes:
        op: Op = Text(inputs[node.op.name]) if isinstance(node.op, Input) else node.op
        tape.append(op, prev=node.prev, reads=node.reads, branch=node.branch, where=node.where)
    for fork in graph.forks:
        tape.fork(fork.path, fork.width)
    return tape
