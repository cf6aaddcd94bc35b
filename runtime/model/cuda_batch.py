"""Batches of decodes in a few fixed sizes, so that a recorded graph can run them.

A padded row has the token 0, no context, and writes its K and V to a scratch slot, which no
sequence owns. It attends to nothing, and nobody reads its logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ...kernels.attention import PlanShape
from ...kernels.attention.gpu_plan import (
    MIN_SHARED_SEQS,
    PREFIX_SPLITS,
    TILE_WIDTH,
    Arrays,
    plan_arrays,
)
from ..sequence import Batch

BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64)
BATCH_ARRAYS: Final = (
    "token_ids", "positions", "slot_mapping", "copy_from", "copy_to", "logit_rows",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bucket:
    """The sizes of one recorded graph."""

    num_seqs: int
    max_blocks: int
    num_prefix_tiles: int  # 0: of a batch without shared prefixes


def bucket_size(batch: Batch) -> int | None:
    """Give the number of rows to pad a batch of plain decodes to; None if it is something else."""
    num_seqs = len(batch.seq_lens)
    is_decode = len(batch.token_ids) == num_seqs and not len(batch.copy_from)
    if not is_decode or num_seqs == 0 or bool((np.diff(batch.cu_seqlens) != 1).any()):
        return None
    return next((size for size in BUCKETS if size >= num_seqs), None)


def prefix_capacity(num_seqs: int, shape: PlanShape) -> int:
    """Give the most prefix tiles that a batch of so many decodes can have."""
    if shape.window is not None or num_seqs < MIN_SHARED_SEQS:
        return 0
    num_row_tiles = -(-num_seqs * shape.group // shape.prefix_rows)
    return (num_row_tiles + num_seqs // MIN_SHARED_SEQS) * PREFIX_SPLITS


def batch_arrays(batch: Batch, shape: PlanShape) -> Arrays:
    """Give all arrays of a step: the batch's own and its plan's."""
    arrays = plan_arrays(batch.cu_seqlens, batch.seq_lens, batch.block_tables, shape)
    own = {name: getattr(batch, name).astype(np.int32, copy=False) for name in BATCH_ARRAYS}
    return arrays | own


def empty_arrays(bucket: Bucket, scratch_slot: int) -> Arrays:
    """Give the arrays of a step in which every row is padding."""
    num = bucket.num_seqs
    zeros = np.zeros(num, np.int32)
    rows = np.arange(num, dtype=np.int32)
    return {
        "token_ids": zeros.copy(),
        "positions": zeros.copy(),
        "slot_mapping": np.full(num, scratch_slot, np.int32),
        "cu_seqlens": np.arange(num + 1, dtype=np.int32),
        "seq_lens": zeros.copy(),
        "block_tables": np.zeros((num, bucket.max_blocks), np.int32),
        "decode_ids": rows,
        "decode_rows": rows.copy(),
        "begins": zeros.copy(),
        "prefix_tiles": np.zeros((bucket.num_prefix_tiles, TILE_WIDTH), np.int32),
    }


def pad_arrays(arrays: Arrays, bucket: Bucket, scratch_slot: int) -> Arrays:
    """Put the arrays of a batch of decodes into those of a bucket."""
    padded = empty_arrays(bucket, scratch_slot)
    for name in ("token_ids", "positions", "slot_mapping", "seq_lens", "begins", "prefix_tiles"):
        padded[name][: len(arrays[name])] = arrays[name]
    num, width = arrays["block_tables"].shape
    padded["block_tables"][:num, :width] = arrays["block_tables"]
    return padded
