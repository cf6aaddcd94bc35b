"""Tokens a second of a decode step, by the number of sequences in it.

The model is the default one, the context 128 tokens, sampling is greedy. Sizes alternate within
each round, so a machine that slows down slows all of them; medians over rounds are compared.
Goal: 16 sequences give at least 3 times the tokens a second of one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np

from plait.runtime.config import EngineConfig
from plait.runtime.load.store import Store, default_home
from plait.runtime.model.interface import Runner
from plait.runtime.model.native import NativeRunner
from plait.runtime.model.registry import load_model
from plait.runtime.model.runner import TorchRunner
from plait.runtime.sequence import Batch

SIZES = (1, 4, 16, 32)
CONTEXT = 128
BLOCK_SIZE = 16
GOAL_SIZE, GOAL_RATIO = 16, 3.0


def decode_batch(num_seqs: int) -> Batch:
    """Make one decode step of `num_seqs` sequences, each in blocks of its own."""
    num_blocks = CONTEXT // BLOCK_SIZE
    tables = np.arange(num_seqs * num_blocks, dtype=np.int32).reshape(num_seqs, num_blocks)
    none = np.zeros(0, np.int64)
    return Batch(
        token_ids=np.arange(100, 100 + num_seqs, dtype=np.int32),
        positions=np.full(num_seqs, CONTEXT - 1, np.int32),
        slot_mapping=(tables[:, -1].astype(np.int64) + 1) * BLOCK_SIZE - 1,
        cu_seqlens=np.arange(num_seqs + 1, dtype=np.int32),
        seq_lens=np.full(num_seqs, CONTEXT, np.int32),
        block_tables=tables,
        copy_from=none,
        copy_to=none,
        logit_rows=np.arange(num_seqs, dtype=np.int64),
    )


def measure(runner: Runner, num_rounds: int, num_steps: int) -> dict[int, list[float]]:
    """Give the seconds of a step, one number a round, for each size."""
    batches = {size: decode_batch(size) for size in SIZES}
    seconds: dict[int, list[float]] = {size: [] for size in SIZES}
    for round_id in range(num_rounds + 1):
        for size, batch in batches.items():
            start = time.perf_counter()
            for _ in range(num_steps):
                runner.run(batch).argmax(-1).tolist()
            if round_id > 0:  # the first round warms up
                seconds[size].append((time.perf_counter() - start) / num_steps)
    return seconds


def main() -> int:
    """Print the table and its summary; give the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3, help="steps a size and round")
    parser.add_argument("--check", action="store_true", help="exit 1 if the goal is missed")
    args = parser.parse_args()
    config = EngineConfig(block_size=BLOCK_SIZE, kv_cache_tokens=max(SIZES) * CONTEXT)
    runner = load_model(Store(default_home()).resolve(args.model), config).runner
    assert isinstance(runner, NativeRunner | TorchRunner)
    if isinstance(runner, TorchRunner):
        runner.cache.pool.normal_()
    else:
        runner.cache.data.fill(1)  # small numbers, and memory that is there
    seconds = measure(runner, args.rounds, args.steps)
    speeds = {size: size / statistics.median(seconds[size]) for size in SIZES}
    print("sequences  ms a step  tokens/s  ratio to 1")
    for size, speed in speeds.items():
        print(f"{size:9} {size / speed * 1e3:10.1f} {speed:9.1f} {speed / speeds[1]:11.2f}")
    ratio = speeds[GOAL_SIZE] / speeds[1]
    print(
        f"decode_batch: {GOAL_SIZE} sequences give {ratio:.2f} times the tokens/s of one "
        f"(goal {GOAL_RATIO:.1f}): {speeds[1]:.1f} -> {speeds[GOAL_SIZE]:.1f}"
    )
    return int(args.check and ratio < GOAL_RATIO)


if __name__ == "__main__":
    sys.exit(main())
