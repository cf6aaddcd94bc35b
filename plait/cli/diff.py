"""Compare two programs, or two versions of one, by their graphs."""

from __future__ import annotations

import argparse

from ..lang.diff import diff
from .target import add_arguments_option, load_graph

EXAMPLE = "example: plait diff old/letter.py:read letter.py:read"

EXIT_DIFFERS = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait diff`."""
    for name in ("old", "new"):
        parser.add_argument(
            name, metavar=name.upper(), help="FILE.py:function, or a graph: FILE.json"
        )
    add_arguments_option(parser, "; those left out stay open in both graphs")


def execute(args: argparse.Namespace) -> int:
    """Print the nodes that differ; give the exit code: 1 if some do."""
    found = diff(load_graph(args.old, args.arg), load_graph(args.new, args.arg))
    if found:
        print(found)
    return EXIT_DIFFERS if found else 0
