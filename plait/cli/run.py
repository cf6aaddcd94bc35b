"""Run a program, or a graph, once, and print what it wrote."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack

from ..interpreter.backend import Backend
from ..interpreter.graph_run import run_graph
from ..interpreter.journal import Journal
from ..interpreter.program import Function
from ..interpreter.result import Result
from ..lang.errors import UsageError
from .display import StreamDisplay
from .target import (
    add_target,
    check_arguments,
    is_graph,
    load_program,
    parse_arguments,
    read_graph,
)

EXAMPLE = "example: plait run examples/hello.py:hello --arg name=Ada --stream"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait run`."""
    add_target(parser)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help="an input of the graph, where FILE.json is one; may be repeated",
    )
    parser.add_argument("--model", help="a pulled model's name, a GGUF file or a model folder")
    parser.add_argument("--connect", metavar="ENDPOINT", help="use a running `plait serve`")
    parser.add_argument("--keys", metavar="FOLDER", help="the CURVE keys for that server")
    parser.add_argument("--stream", action="store_true", help="print each variable as it grows")
    parser.add_argument("--seed", type=int, help="make the run repeatable")
    parser.add_argument("--journal", metavar="FILE", help="keep what is done, and go on from it")


def execute(args: argparse.Namespace) -> int:
    """Run the program; give the exit code."""
    if args.model and args.connect:
        raise UsageError("--model and --connect exclude each other: the server chose its model")
    if args.keys and not args.connect:
        raise UsageError("--keys is for --connect tcp://HOST:PORT; an own runtime needs none")
    if is_graph(args.target):
        return _run_graph(args)
    if args.input:
        raise UsageError("--input is for a graph, FILE.json; a program takes --arg")
    program = load_program(args.target)
    if not isinstance(program, Function):
        raise UsageError(f"{args.target}: use plait.function to make it a program that runs")
    arguments = parse_arguments(program, args.arg)
    check_arguments(program, arguments)
    program = program.options(seed=args.seed)
    with ExitStack() as stack:
        backend = _backend(args)
        stack.callback(backend.close)
        chosen = program.options(backend=backend)
        if args.journal is not None:
            kept = stack.enter_context(Journal(args.journal))
            chosen = chosen.options(journal=kept)
            stack.callback(_tell, kept)
        if args.stream:
            return _stream(chosen, arguments)
        show(chosen.run(**arguments))
    return 0


def _run_graph(args: argparse.Namespace) -> int:
    """Run a graph's JSON: its program's source is not needed."""
    if args.arg or args.stream:
        option = "--arg" if args.arg else "--stream"
        raise UsageError(f"{option} is for a program; a graph takes --input NAME=TEXT")
    inputs: dict[str, str] = {}
    for word in args.input:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise UsageError(f"--input {word!r}: write NAME=TEXT")
        inputs[name] = text
    graph = read_graph(args.target)
    with ExitStack() as stack:
        backend = _backend(args)
        stack.callback(backend.close)
        show(run_graph(graph, inputs=inputs, backend=backend, seed=args.seed))
    return 0


def show(result: Result) -> None:
    """Print a run's text, and its variables beside it."""
    print(result.text())
    for name in result.variables:
        print(f"{name} = {result[name]!r}", file=sys.stderr)


def _tell(kept: Journal) -> None:
    stats = kept.stats
    print(
        f"{kept.path}: {stats.num_known} outcomes were known, {stats.num_added} are new",
        file=sys.stderr,
    )


def _backend(args: argparse.Namespace) -> Backend:
    if args.connect is not None:
        from ..interpreter.backends.remote import RemoteBackend

        return RemoteBackend(args.connect, keys=args.keys)
    from ..interpreter.backends.embedded import EmbeddedBackend

    return EmbeddedBackend(args.model)


def _stream(program: Function, arguments: dict[str, object]) -> int:
    display = StreamDisplay(sys.stdout)
    with program.stream(**arguments) as events:
        try:
            for event in events:
                display.show(event)
        finally:
            display.close()
    for failure in display.failures:  # of nodes whose failure the program has handled
        print(f"plait: {failure}", file=sys.stderr)
    return 0
