"""Fetch a model into the store, or add a local one to it."""

from __future__ import annotations

import argparse
import sys

EXAMPLE = "example: plait pull smollm2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait pull`."""
    parser.add_argument("model", help="smollm2, a GGUF file, or a Hugging Face folder")


def execute(args: argparse.Namespace) -> int:
    """Pull the model; give the exit code."""
    from ..runtime.load.store import Store, default_home
    from ..runtime.pull import pull

    path = pull(args.model, Store(default_home()), progress=_say)
    print(path)
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
