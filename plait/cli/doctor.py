"""Say what this machine has for plait, and what is missing."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator
from importlib.metadata import version

EXAMPLE = "example: plait doctor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait doctor`: none."""


def execute(args: argparse.Namespace) -> int:
    """Print one finding a line; give the exit code."""
    for name, finding in _findings():
        print(f"{name:8} {finding}")
    return 0


def _findings() -> Iterator[tuple[str, str]]:
    from ..runtime.load.store import Store, default_home
    from ..runtime.model.host import physical_cores

    yield "plait", version("plait")
    yield "python", platform.python_version()
    yield "machine", f"{platform.machine()}, {physical_cores()} cores"
    yield "kernels", _kernels()
    yield "torch", _torch()
    models = ", ".join(model.name for model in Store(default_home()).models())
    yield "models", models or "none; run `plait pull smollm2`"
    yield "home", str(default_home())


def _kernels() -> str:
    from ..kernels.native import load_library, why_absent

    library = load_library()
    if library is None:
        return f"none, so models run several times slower: {why_absent()}"
    return f"compiled, running those for {library.isa}"


def _torch() -> str:
    import torch

    from ..kernels.native import load_library

    if torch.cuda.is_available():
        names = (torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
        return f"{torch.__version__}, {', '.join(names)}"
    use = "loaded only for models that the kernels do not know" if load_library() else "runs models"
    return f"{torch.__version__}, no CUDA device; {use}"
