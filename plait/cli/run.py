"""Run a program once, and print what it wrote."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack

from ..interpreter.backend import Backend
from ..interpreter.journal import Journal
from ..interpreter.program import Function
from ..interpreter.result import Result
from ..lang.errors import UsageError
from .display import StreamDisplay
from .target import add_target, check_arguments, load_program, parse_arguments

EXAMPLE = "example: plait run examples/hello.py:hello --arg name=Ada --stream"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait run`."""
    add_target(parser)
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
