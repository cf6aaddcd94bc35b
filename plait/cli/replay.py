"""Print again what a recorded run printed, from its journal alone: no model is loaded."""

from __future__ import annotations

import argparse

from ..interpreter.journal import Journal
from ..interpreter.program import Function
from ..lang.errors import UsageError
from .run import show
from .target import add_target, check_arguments, load_program, parse_arguments

EXAMPLE = "example: plait replay examples/hello.py:hello --arg name=Ada --journal hello.journal"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait replay`."""
    add_target(parser)
    parser.add_argument("--journal", metavar="FILE", required=True, help="what `plait run` kept")
    parser.add_argument("--seed", type=int, help="that of the run, if it is not the last one")


def execute(args: argparse.Namespace) -> int:
    """Replay the program; give the exit code."""
    program = load_program(args.target)
    if not isinstance(program, Function):
        raise UsageError(f"{args.target}: use plait.function to make it a program that runs")
    arguments = parse_arguments(program, args.arg)
    check_arguments(program, arguments)
    with Journal(args.journal, is_replay=True) as kept:
        show(program.options(seed=args.seed, journal=kept).run(**arguments))
    return 0
