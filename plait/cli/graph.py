"""Trace a program, and print its graph."""

from __future__ import annotations

import argparse
import json
import sys

from ..lang import serialize, show
from ..lang.errors import UsageError
from ..lang.graph_schema import graph_schema
from .target import add_arguments_option, load_graph

EXAMPLE = "example: plait graph examples/essay_judge.py:judge --format mermaid"

FORMATS = {
    "text": show.to_text,
    "mermaid": show.to_mermaid,
    "dot": show.to_dot,
    "json": serialize.dumps,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait graph`."""
    parser.add_argument(
        "target", metavar="FILE.py:function", nargs="?", help="the program, or a graph: FILE.json"
    )
    add_arguments_option(parser, "; those left out stay open in the graph")
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of graphs as JSON instead"
    )
    parser.add_argument("--format", choices=sorted(FORMATS), default="text", help="default: text")


def execute(args: argparse.Namespace) -> int:
    """Print the graph on stdout and the breaks on stderr; give the exit code."""
    if args.schema:
        print(json.dumps(graph_schema(), indent=1))
        return 0
    if args.target is None:
        raise UsageError("graph: pass FILE.py:function, such as examples/hello.py:hello")
    graph = load_graph(args.target, args.arg)
    print(FORMATS[args.format](graph))
    for stop in graph.breaks:
        print(f"break at {stop.where}: {stop.name}: {stop.reason}", file=sys.stderr)
    if not graph.is_complete:
        print("the trace ends there: what follows depends on a real value", file=sys.stderr)
    return 0
