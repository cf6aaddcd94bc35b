"""One run of a whole graph: its nodes in one segment, and no body."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import cast

from ..lang.check import check
from ..lang.errors import InvalidArgument
from ..lang.graph import Graph
from ..lang.ops import Input, Op, Text
from ..lang.options import text
from ..lang.program import Program
from ..lang.tape import Tape
from ..lang.where import place
from .backend import SessionConfig
from .driver import LiveDriver
from .options import Options
from .result import Result
from .run import choose_backend, journaling


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
        tape.fork(fork.path, fork.width, kind=fork.kind)
    return tape
