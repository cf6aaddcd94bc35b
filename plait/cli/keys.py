"""Make the CURVE keys that a server beyond loopback needs."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLE = """example:
  plait keys ~/plait-keys
  plait serve --listen tcp://0.0.0.0:5757 --keys ~/plait-keys
  plait run FILE.py:function --connect tcp://HOST:5757 --keys ~/plait-keys
Another machine needs the folder's `client` half alone: copy it there, pass it as --keys."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait keys`."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a folder without keys")


def execute(args: argparse.Namespace) -> int:
    """Write a server's and a client's keys; give the exit code."""
    from ..runtime.serve.keys import create_keys

    create_keys(args.folder)
    print(f"{args.folder / 'server'}: for `plait serve --keys {args.folder}`")
    print(f"{args.folder / 'client'}: for each client, `plait run --keys`")
    return 0
