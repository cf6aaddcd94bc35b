"""Trace a program, and print its graph."""

from __future__ import annotations

import argparse
import sys

from ..lang import serialize, show
from .target import add_target, check_arguments, load_program, parse_arguments

EXAMPLE = "example: plait graph examples/essay_judge.py:judge --format mermaid"

FORMATS = {
    "text": show.to_text,
    "mermaid": show.to_mermaid,
    "dot": show.to_dot,
    "json": serialize.dumps,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait graph`."""
    add_target(parser, "; those left out stay open in the graph")
    parser.add_argument("--format", choices=sorted(FORMATS), default="text", help="default: text")


def execute(args: argparse.Namespace) -> int:
    """Print the graph on stdout and the breaks on stderr; give the exit code."""
    program = load_program(args.target)
    arguments = parse_arguments(program, args.arg)
    check_arguments(program, arguments, is_partial=True)
    graph = program.trace(**arguments)
    print(FORMATS[args.format](graph))
    for stop in graph.breaks:
        print(f"break at {stop.where}: {stop.name}: {stop.reason}", file=sys.stderr)
    if not graph.is_complete:
        print("the trace ends there: what follows depends on a real value", file=sys.stderr)
    return 0
