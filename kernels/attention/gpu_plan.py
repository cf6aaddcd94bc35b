"""What a GPU's attention needs to know of a batch, found on the host from the host's arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

Int32: TypeAlias = npt.NDArray[np.int32]
Arrays: TypeAlias = dict[str, Int32]

# A tile: sequence, row of q of its first token, position of that token, first and end row of the
# tile (a row is one head of one token, counted from that token), first and end key, place of the
# first token in the parts, number of the part.
TILE_WIDTH = 9
MIN_SHARED_SEQS = 4  # fewer decodes read a prefix as fast one by one
MIN_SHARED_TOKENS = 256
PREFIX_SPLITS = 8  # parts of a shared prefix
MIN_SPLIT_TOKENS = 256  # a part of a decode is not worth a program below this
MAX_SPLITS = 32
WANTED_PROGRAMS = 512  # four for each multiprocessor of a large GPU


@dataclass(frozen=True, slots=True)
class PlanShape:
    """What planning must know of the model and the kernels. `window` None sees everything."""

    num_heads: int
    num_kv_heads: int
    block_size: int
    extend_rows: int  # rows of a tile, as in the kernels' configurations
    prefix_rows: int
    window: int | None = None

    @property
    def group(self) -> int:
        """Count the heads of one KV head."""
        return self.num_heads // self.num_kv_heads


@dataclass(frozen=True, slots=True)
class GpuPlan:
    """How one batch is computed: its tensors on the device, and the sizes of the grids.

    After: the work lists of FlashInfer, Ye et al. 2024.
    """

    shape: PlanShape
    cu_seqlens: Tensor  # [n + 1]
    seq_lens: Tensor  # [n]
    block_tables: Tensor  # [n, max blocks]
    decode_ids: Tensor  # [d] sequences with one new token
    decode_rows: Tensor  # [d] their rows of q
    begins: Tensor  # [d] the length of the prefix that the prefix tiles cover
    tiles: Tensor  # [m, TILE_WIDTH] all other sequences
    prefix_tiles: Tensor  # [p, TILE_WIDTH]
    num_splits: int


def plan_gpu(
    cu_seqlens: Int32,  # [n + 1]
    seq_lens: Int32,  # [n]
    block_tables: Int32,  # [n, max blocks]
    shape: PlanShape,
    to_device: Callable[[Arrays], dict[str, Tensor]],
) -> GpuPlan:
    """Plan a batch; `to_device` is called once with all arrays."""
    arrays = plan_arrays(cu_seqlens, seq_lens, block_tables, shape)
    num_splits = choose_splits(len(arrays["decode_ids"]), shape, int(seq_lens.max(initial=0)))
    return GpuPlan(shape=shape, num_splits=num_splits, **to_device(arrays))


def plan_arrays(
    cu_seqlens: Int32, seq_lens: Int32, block_tables: Int32, shape: PlanShape
) -> Arrays:
    """Give the arrays of a plan by their names in `GpuPlan`."""
    query_lens = np.diff(cu_seqlens)
    decode_ids = np.flatnonzero(query_lens == 1).astype(np.int32)
    begins = np.zeros(len(decode_ids), np.int32)
    prefix_tiles: list[tuple[int, ...]] = []
    if shape.window is None:
        for first, end, prefix_len in shared_prefixes(
            decode_ids, seq_lens, block_tables, shape.block_size
        ):
            begins[first:end] = prefix_len
            prefix_tiles += _prefix_tiles(decode_ids, cu_seqlens, first, end, prefix_len, shape)
    tiles: list[tuple[int, ...]] = []
    for seq_id in np.flatnonzero(query_lens > 1).tolist():
        tiles += _extend_tiles(
            seq_id, int(cu_seqlens[seq_id]), int(query_lens[seq_id]), int(seq_lens[seq_id]), shape
        )
    tiles.sort(key=lambda tile: tile[5] - tile[6])  # the longest first: the ends come together
    return {
        "cu_seqlens": cu_seqlens.astype(np.int32, copy=False),
        "seq_lens": seq_lens.astype(np.int32, copy=False),
        "block_tables": block_tables.astype(np.int32, copy=False),
        "decode_ids": decode_ids,
        "decode_rows": cu_seqlens[:-1][decode_ids].astype(np.int32),
        "begins": begins,
        "tiles": np.array(tiles, np.int32).reshape(-1, TILE_WIDTH),
        "prefix_tiles": np.array(prefix_tiles, np.int32).reshape(-1, TILE_WIDTH),
    }


def choose_splits(num_seqs: int, shape: PlanShape, longest: int) -> int:
    """Give the parts of each decode: enough programs for a GPU, and no part too short.

    A power of two: merging parts is one kernel for each size of these.
    """
    if num_seqs == 0:
        return 1
    if shape.window is not None:
        longest = min(longest, shape.window)
    wanted = -(-WANTED_PROGRAMS // (num_seqs * shape.num_kv_heads))
    most = max(1, min(wanted, longest // MIN_SPLIT_TOKENS, MAX_SPLITS))
    return int(1 << (most.bit_length() - 1))


def shared_prefixes(
    decode_ids: Int32, seq_lens: Int32, block_tables: Int32, block_size: int
) -> list[tuple[int, int, int]]:
    """Find neighbours in `decode_ids` that begin with the same blocks.

    Each is (first, end, tokens): places in `decode_ids`, which follow each other in the batch
    too, and the length of the prefix, whole blocks that end before the new token of each.
    """
    if len(decode_ids) < MIN_SHARED_SEQS or block_tables.shape[1] == 0:
        return []
    whole = (seq_lens[decode_ids] - 1) // block_size  # [d] blocks before the new token
    tables = block_tables[decode_ids]
    is_other = tables[1:] != tables[:-1]
    same = np.where(is_other.any(1), is_other.argmax(1), tables.shape[1])  # [d - 1]
    same = np.minimum(same, np.minimum(whole[1:], whole[:-1]))
    same[np.diff(decode_ids) != 1] = 0
    is_joined = same * block_size >= MIN_SHARED_TOKENS
    found = []
    first = 0
    for place in range(1, len(decode_ids) + 1):
        if place < len(decode_ids) and is_joined[place - 1]:
            continue
        if place - first >= MIN_SHARED_SEQS:
            found.append((first, place, int(same[first : place - 1].min()) * block_size))
        first = place
    return found


def _prefix_tiles(
    decode_ids: Int32, cu_seqlens: Int32, first: int, end: int, prefix_len: int, shape: PlanShape
) -> list[tuple[int, ...]]:
    """Cut the rows of the decodes `first` to `end`, and the prefix, into tiles."""
    seq_id, num_rows = int(decode_ids[first]), (end - first) * shape.group
    token = int(cu_seqlens[seq_id])
    span = -(-prefix_len // PREFIX_SPLITS)
    return [
        (seq_id, token, 0, row, min(row + shape.prefix_rows, num_rows), begin,
         min(begin + span, prefix_len), first, part)
        for row in range(0, num_rows, shape.prefix_rows)
        for part, begin in enumerate(range(0, prefix_len, span))
    ]  # fmt: skip


def _extend_tiles(
    seq_id: int, token: int, query_len: int, seq_len: int, shape: PlanShape
) -> list[tuple[int, ...]]:
    """Cut the rows of one sequence into tiles, each with the keys that its rows see."""
    position = seq_len - query_len
    tiles: list[tuple[int, ...]] = []
    for row in range(0, query_len * shape.group, shape.extend_rows):
        end_row = min(row + shape.extend_rows, query_len * shape.group)
        first_seen = 0
        if shape.window is not None:
            first_seen = max(0, position + row // shape.group - shape.window + 1)
        end_key = position + (end_row - 1) // shape.group + 1
        tiles.append((seq_id, token, position, row, end_row, first_seen, end_key, 0, 0))
    return tiles
