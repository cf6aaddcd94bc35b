"""Find the fastest block sizes on this device, for kernels/tuning/table.py.

`python -m benchmarks.gpu_tune` prints rows, `--write` puts them into the table. Every configuration
is timed on the shapes that are served; one that does not fit the device is passed over. `--limit`
seconds are shared out evenly; what was not tried in time is left out.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path
from unittest import mock

import torch

from plait.kernels.tuning import Config, capability_of
from plait.kernels.tuning.table import TABLE

from .gpu_check import missing

Rows = dict[tuple[str, str, str], tuple[int, int, int, int]]
BLOCKS_N, WARPS, STAGES = (64, 32, 128), (4, 8), (3, 2)
# Rows a tile: a decode's are the heads of a KV head, whatever stands there.
BLOCKS_M = {"decode": (16,), "extend": (64, 128), "prefix": (64, 128)}
TABLE_PATH = Path(__file__).resolve().parents[1] / "kernels" / "tuning" / "table.py"


def attention_run(kernel: str, head_dim: int, device: torch.device) -> Callable[[], float]:
    """Give what times a kernel with the configuration that is in the table then."""
    from .gpu import attention_speeds

    shapes = {
        "decode": ([1] * 64, 4096, 0),
        "extend": ([4096], 4096, 0),
        "prefix": ([1] * 64, 4096, 4080),
    }

    def run() -> float:
        with mock.patch.object(attention_speeds, "HEAD_DIM", head_dim):
            return attention_speeds.attend_seconds(device, *shapes[kernel])

    return run


def linear_run(kernel: str, num_rows: int, device: torch.device) -> Callable[[], float]:
    """Give what times a quantised product of 4096 to 4096."""
    from plait.kernels.linear import QuantizedFormat, quantized_linear
    from plait.kernels.linear.quantized import BLOCK_BYTES, from_blocks

    from .gpu.floors import seconds

    form: QuantizedFormat = "Q4_0" if kernel == "linear4" else "Q8_0"
    raw = torch.zeros(4096, 128 * BLOCK_BYTES[form], dtype=torch.uint8, device=device)
    layer = from_blocks(raw, form)
    x = torch.randn(num_rows, 4096, device=device).bfloat16()
    return lambda: seconds(lambda: quantized_linear(x, layer), num_rounds=3)


def jobs(device: torch.device) -> Iterator[tuple[str, str, Callable[[], float], list[Config]]]:
    """Give what is tuned: kernel, shape class, its timing, and the configurations to try."""
    for kernel, head_dim in itertools.product(BLOCKS_M, (64, 128)):
        tried = itertools.product(BLOCKS_M[kernel], BLOCKS_N, WARPS, STAGES)
        run = attention_run(kernel, head_dim, device)
        yield kernel, f"{head_dim}x2", run, [Config(*row) for row in tried]
    for kernel, rows in itertools.product(("linear4", "linear8"), (16, 64)):
        tried = itertools.product((rows,), BLOCKS_N, WARPS, STAGES)
        run = linear_run(kernel, 1 if rows == 16 else 64, device)
        yield kernel, str(rows), run, [Config(*row) for row in tried]


def tune(
    key: tuple[str, str, str], run: Callable[[], float], tried: list[Config], deadline: float
) -> Config | None:
    """Give the fastest configuration; None if none ran before the deadline."""
    best: tuple[float, Config] | None = None
    for config in tried:
        if time.monotonic() > deadline:
            break
        try:
            with mock.patch.dict(TABLE, {key: astuple(config)}):
                took = run()
        except Exception as e:  # too much shared memory, or too many registers
            print(f"  {key} {config}: {type(e).__name__}")
            continue
        if best is None or took < best[0]:
            best = (took, config)
    return None if best is None else best[1]


def table_text(rows: Rows) -> str:
    """Give the table's file with `rows`, ordered."""
    head = TABLE_PATH.read_text("utf-8").split("TABLE: Final")[0]
    lines = [f'    ("{k}", "{s}", "{c}"): {row},' for (k, s, c), row in sorted(rows.items())]
    name = "TABLE: Final[dict[tuple[str, str, str], tuple[int, int, int, int]]]"
    return head + name + " = {\n" + "\n".join(lines) + "\n}\n"


def main() -> int:
    """Tune, print, and give the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=300, help="seconds")
    parser.add_argument("--write", action="store_true", help="rewrite kernels/tuning/table.py")
    args = parser.parse_args()
    device = torch.device("cuda")
    if problem := missing(device):
        print(f"gpu_tune: {problem}")
        return 2
    deadline = time.monotonic() + args.limit
    rows: Rows = dict(TABLE)
    todo = list(jobs(device))
    for num_done, (kernel, shape, run, tried) in enumerate(todo):
        key = (kernel, shape, capability_of(device))
        share = (deadline - time.monotonic()) / (len(todo) - num_done)
        found = tune(key, run, tried, time.monotonic() + share)
        if found is not None:
            rows[key] = (found.block_m, found.block_n, found.num_warps, found.num_stages)
            print(key, rows[key], flush=True)
    if args.write:
        TABLE_PATH.write_text(table_text(rows), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
