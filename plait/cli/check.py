"""Find what is wrong with programs before a model is asked."""

from __future__ import annotations

import argparse
import sys

from ..interpreter.check import check
from ..lang.errors import UsageError
from ..lang.graph import Graph
from ..lang.program import Program
from .target import add_arguments_option, check_arguments, load_programs, parse_arguments

EXAMPLE = "example: plait check examples/essay_judge.py --model smollm2"

EXIT_FAULTY = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait check`."""
    parser.add_argument(
        "target", metavar="FILE.py[:function]", help="a program, or a file with programs"
    )
    add_arguments_option(parser, "; those left out stay open")
    parser.add_argument("--model", help="check against its context and template, too")


def execute(args: argparse.Namespace) -> int:
    """Print a problem a line; give the exit code: 1 if one is an error."""
    programs = load_programs(args.target)
    if args.arg and len(programs) > 1:
        raise UsageError("--arg is of one program: name it, FILE.py:function")
    is_faulty = False
    for program in programs:
        arguments = _arguments(program, args.arg)
        problems = check(program, arguments, model=args.model)
        for problem in problems:
            print(problem)
        has_error = any(problem.severity == "error" for problem in problems)
        if not has_error:
            _tell_end(program.trace(**arguments))
        is_faulty |= has_error
    return EXIT_FAULTY if is_faulty else 0


def _tell_end(graph: Graph) -> None:
    """Say where the check had to end because an argument is open."""
    for stop in graph.breaks:
        if not graph.is_complete and stop.name in graph.inputs:
            print(
                f"{stop.where}: what follows is not checked: Python needs {stop.name}; "
                f"pass --arg {stop.name}=...",
                file=sys.stderr,
            )


def _arguments(program: Program, words: list[str]) -> dict[str, object]:
    arguments = parse_arguments(program, words)
    check_arguments(program, arguments, is_partial=True)
    return arguments
