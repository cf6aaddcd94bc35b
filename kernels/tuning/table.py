"""Measured block sizes. `python -m benchmarks.gpu_tune --write` rewrites this file.

A row is (kernel, shape, compute capability) -> (block_m, block_n, num_warps, num_stages). Rows
for `any` were chosen by what the compiler makes of them, not by time: they fit the shared memory
of every device from capability 8.0 on, and with three stages both the block table and the keys
behind it are loaded ahead.
"""

from __future__ import annotations

from typing import Final

ANY: Final = "any"

TABLE: Final[dict[tuple[str, str, str], tuple[int, int, int, int]]] = {
    ("decode", "any", "any"): (16, 32, 4, 3),
    ("decode", "128x2", "any"): (16, 64, 4, 3),
    ("decode", "64x2", "any"): (16, 64, 4, 3),
    ("extend", "any", "any"): (32, 32, 4, 3),
    ("extend", "128x2", "any"): (128, 64, 8, 3),
    ("extend", "64x2", "any"): (128, 64, 4, 3),
    ("prefix", "any", "any"): (32, 32, 4, 3),
    ("prefix", "128x2", "any"): (64, 64, 4, 3),
    ("prefix", "64x2", "any"): (64, 64, 4, 3),
    ("linear4", "any", "any"): (16, 64, 4, 3),
    ("linear4", "64", "any"): (64, 64, 4, 2),
    ("linear8", "any", "any"): (16, 64, 4, 3),
    ("linear8", "64", "any"): (64, 64, 4, 2),
}
