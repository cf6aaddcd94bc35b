"""Serve a model over ZeroMQ to programs in other processes."""

from __future__ import annotations

import argparse

from ..runtime.flags import add_engine_flags, read_engine_flags

EXAMPLE = """examples:
  plait serve                                  a private ipc socket, printed at the start
  plait serve --listen tcp://127.0.0.1:5757    for `plait run --connect tcp://127.0.0.1:5757`"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait serve`."""
    parser.add_argument("--listen", metavar="ENDPOINT", help="ipc://PATH or tcp://HOST:PORT")
    parser.add_argument("--model", help="a pulled model's name, a GGUF file or a model folder")
    parser.add_argument("--keys", metavar="FOLDER", help="CURVE keys, needed beyond loopback")
    parser.add_argument("--watch-parent", action="store_true", help="stop when stdin closes")
    parser.add_argument(
        "--scripted", metavar="FILE.py:function", help="serve a scripted stand-in model"
    )
    add_engine_flags(parser)


def execute(args: argparse.Namespace) -> int:
    """Serve until told to stop; give the exit code."""
    from ..serving import serve

    return serve(
        args.listen,
        args.model,
        read_engine_flags(args),
        watch_parent=args.watch_parent,
        scripted=args.scripted,
        keys=args.keys,
    )
