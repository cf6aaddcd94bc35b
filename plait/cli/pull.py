"""Fetch a model into the store, or add a local one to it."""

from __future__ import annotations

import argparse
import sys

EXAMPLE = """examples:
  plait pull smollm2
  plait pull ~/Downloads/model.gguf --name tiny"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait pull`."""
    parser.add_argument("model", help="smollm2, a GGUF file, or a Hugging Face folder")
    parser.add_argument("--name", help="what to call it; without it the file's or folder's name")


def execute(args: argparse.Namespace) -> int:
    """Pull the model; give the exit code."""
    from ..runtime.load.store import Store, default_home
    from ..runtime.pull import pull

    path = pull(args.model, Store(default_home()), progress=_say, name=args.name)
    print(path)
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
