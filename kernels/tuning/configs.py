"""Look a kernel's block sizes up in the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch

from .table import ANY, TABLE


@dataclass(frozen=True, slots=True)
class Config:
    """How a kernel is cut: rows and columns a tile, warps a program, stages of its loads."""

    block_m: int
    block_n: int
    num_warps: int
    num_stages: int


def choose(kernel: str, shape: str, device: torch.device) -> Config:
    """Give the row for this shape and device, else for the shape, else the kernel's own."""
    capability = capability_of(device)
    for key in ((kernel, shape, capability), (kernel, shape, ANY), (kernel, ANY, ANY)):
        if key in TABLE:
            return Config(*TABLE[key])
    raise KeyError(f"kernels/tuning/table.py has no default row for {kernel!r}")


def shape_class(size: int, dtype: torch.dtype) -> str:
    """Name the shapes that are tuned together: a power of two and the bytes of a number."""
    return f"{1 << (size - 1).bit_length()}x{dtype.itemsize}"


def capability_of(device: torch.device) -> str:
    """Give the compute capability of a GPU, as `9.0`; of other devices, `any`."""
    return _capability(device) if device.type == "cuda" else ANY


@lru_cache
def _capability(device: torch.device) -> str:
    major, minor = torch.cuda.get_device_capability(device)
    return f"{major}.{minor}"
