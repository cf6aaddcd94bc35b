"""Where an operation runs: the one question that every dispatch asks."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def uses_triton(tensor: Tensor) -> bool:
    """Say whether the Triton kernels serve this tensor: it is on a GPU and Triton is there.

    Imports nothing: Triton is slow to import, and absent from torch's builds for CPUs.
    """
    return tensor.device.type == "cuda" and _has_triton()


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None
