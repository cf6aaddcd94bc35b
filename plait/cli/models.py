"""List the models in the store."""

from __future__ import annotations

import argparse

EXAMPLE = "example: plait models"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait models`: none."""


def execute(args: argparse.Namespace) -> int:
    """Print one model a line; give the exit code."""
    from ..runtime.load.store import Store, default_home

    models = Store(default_home()).models()
    if not models:
        print("no models yet; run `plait pull smollm2`")
    for model in models:
        print(f"{model.name:20} {model.size_bytes / 1e6:8.0f} MB  {model.path}")
    return 0
