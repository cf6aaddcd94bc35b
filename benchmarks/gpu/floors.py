"""What this device can do: the rates that kernels are held against, measured in the same run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import torch

COPY_BYTES = 1 << 30
MATRIX_SIZE = 8192


@dataclass(frozen=True, slots=True)
class Floors:
    """Bytes and bf16 operations a second."""

    bytes_s: float
    flops_s: float


def seconds(run: Callable[[], object], num_rounds: int = 7, num_runs: int = 10) -> float:
    """Give the median time of one run on the device, back to back."""
    for _ in range(3):
        run()
    found: list[float] = []
    for _ in range(num_rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        for _ in range(num_runs):
            run()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) / 1e3 / num_runs)
    return statistics.median(found)


def measure_floors(device: torch.device) -> Floors:
    """Time a copy in the device's memory, and a bf16 matrix product."""
    source = torch.empty(COPY_BYTES, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    a = torch.randn(MATRIX_SIZE, MATRIX_SIZE, device=device).bfloat16()
    copy_s = seconds(lambda: target.copy_(source))
    product_s = seconds(lambda: a @ a)
    return Floors(2 * COPY_BYTES / copy_s, 2 * MATRIX_SIZE**3 / product_s)
