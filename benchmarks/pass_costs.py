"""What a pass over so many rows costs: the figures of `PASS_COSTS` in speculation/planner.py."""

from __future__ import annotations

import statistics
import time

import numpy as np

from benchmarks.default_model import load_default_model
from plait.runtime.config import EngineConfig
from plait.runtime.model.interface import Model
from plait.runtime.sample import SampleRow, sample
from plait.runtime.sequence import Batch, SamplingParams
from plait.runtime.speculation.planner import PASS_COSTS

CONTEXT = 400  # tokens before the rows
BLOCK_SIZE = 16
NUM_BLOCKS = -(-(CONTEXT + max(PASS_COSTS)) // BLOCK_SIZE)
GREEDY = SamplingParams(temperature=0.0)


def draft_batch(num_rows: int) -> Batch:
    """Make a pass over the last token of an output and a draft, all of whose logits are wanted."""
    rows = np.arange(num_rows)
    none = np.zeros(0, np.int64)
    return Batch(
        token_ids=(100 + rows).astype(np.int32),
        positions=(CONTEXT + rows).astype(np.int32),
        slot_mapping=CONTEXT + rows,
        cu_seqlens=np.array([0, num_rows], np.int32),
        seq_lens=np.array([CONTEXT + num_rows], np.int32),
        block_tables=np.arange(NUM_BLOCKS, dtype=np.int32)[None],
        copy_from=none,
        copy_to=none,
        logit_rows=rows,
    )


def measure_pass_costs(num_rounds: int) -> dict[int, float]:
    """Give the cost of passes over some numbers of rows, in passes over one row.

    Each pass is held against one over one row that ran just before it: a machine that slows
    down slows both. Rows are drawn greedily, one after the other, as those of a draft are.
    """
    config = EngineConfig(
        block_size=BLOCK_SIZE, kv_cache_tokens=NUM_BLOCKS * BLOCK_SIZE, max_context=1024
    )
    model = load_default_model(config)
    _seconds(model, draft_batch(max(PASS_COSTS)))  # warms up, and fills the pool
    single = draft_batch(1)
    ratios: dict[int, list[float]] = {num_rows: [] for num_rows in PASS_COSTS if num_rows > 1}
    for _ in range(num_rounds):
        for num_rows, found in ratios.items():
            batch = draft_batch(num_rows)
            found.append(_seconds(model, batch) / _seconds(model, single))
    return {1: 1.0} | {num_rows: statistics.median(found) for num_rows, found in ratios.items()}


def print_pass_costs(num_rounds: int) -> None:
    """Print what was measured beside what the planner supposes."""
    print(f"{'rows':>5}{'measured':>10}{'PASS_COSTS':>12}")
    for num_rows, cost in measure_pass_costs(num_rounds).items():
        print(f"{num_rows:5}{cost:10.2f}{PASS_COSTS[num_rows]:12.2f}")


def _seconds(model: Model, batch: Batch) -> float:
    tokenizer = model.tokenizer
    start = time.perf_counter()
    logits = model.runner.run(batch)
    for i in range(len(logits)):
        row = SampleRow(GREEDY, seed=0, position=i)
        sample(logits[i : i + 1], [row], tokenizer.vocab_size, tokenizer.eos_token_ids)
    return time.perf_counter() - start
