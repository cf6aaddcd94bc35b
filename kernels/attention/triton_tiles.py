"""Attention of tiles of rows: prefill and extension, and the prefix that decodes share.

A tile is a line of a table that the host made (`gpu_plan.py`): some rows, some keys. A row is
one head of one token; the heads of a KV head follow each other, so keys are read once for all.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..tuning import Config, choose, shape_class
from .gpu_plan import TILE_WIDTH
from .triton_span import attend_span, close_span


def extend(
    q: Tensor,  # [T, H, D]
    k_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    v_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    block_tables: Tensor,  # [n, max blocks]
    tiles: Tensor,  # [m, TILE_WIDTH]
    out: Tensor,  # [T, H, D]
    *,
    scale: float,
    block_m: int,
    window: int | None = None,
    config: Config | None = None,
) -> None:
    """Write the attention of the tiles' rows, each up to its own position."""
    _launch(
        "extend", q, k_cache, v_cache, block_tables, tiles, out, out, 1, 0, scale, block_m,
        window, config,
    )  # fmt: skip


def attend_prefix(
    q: Tensor,  # [T, H, D]
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    tiles: Tensor,  # [m, TILE_WIDTH]
    parts: Tensor,  # [d, H, num parts, D] fp32
    lse: Tensor,  # [d, H, num parts] fp32
    *,
    first_part: int,
    scale: float,
    block_m: int,
    config: Config | None = None,
) -> None:
    """Write parts from `first_part` on: the tiles' rows against the prefix that they share.

    After: Hydragen, Juravsky et al. 2024; the cascade of FlashInfer, Ye et al. 2024.
    """
    _launch(
        "prefix", q, k_cache, v_cache, block_tables, tiles, parts, lse, parts.shape[2],
        first_part, scale, block_m, None, config,
    )  # fmt: skip


def _launch(
    kernel: str,
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    tiles: Tensor,
    out: Tensor,
    lse: Tensor,
    num_parts: int,
    first_part: int,
    scale: float,
    block_m: int,
    window: int | None,
    config: Config | None,
) -> None:
    num_heads, head_dim = q.shape[1:]
    kv_heads = k_cache.shape[2]
    if len(tiles) == 0:
        return
    assert q.stride(1) == head_dim
    assert q.stride(2) == block_tables.stride(1) == 1
    for tensor in (k_cache, v_cache, tiles, out, lse):
        assert tensor.is_contiguous()
    config = config or choose(kernel, shape_class(head_dim, k_cache.dtype), q.device)
    _attend_tile[(len(tiles), kv_heads)](
        q,
        k_cache,
        v_cache,
        block_tables,
        tiles,
        out,
        lse,
        q.stride(0),
        block_tables.stride(0),
        num_parts,
        first_part,
        scale * math.log2(math.e),
        window or 0,
        TILE_WIDTH=TILE_WIDTH,
        GROUP=num_heads // kv_heads,
        KV_HEADS=kv_heads,
        HEAD_DIM=head_dim,
        BLOCK_SIZE=k_cache.shape[1],
        BLOCK_M=block_m,
        BLOCK_N=config.block_n,
        BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
        IS_PREFIX=kernel == "prefix",
        HAS_WINDOW=window is not None,
        num_warps=config.num_warps,
        num_stages=config.num_stages,
    )


# These change from batch to batch: a kernel for each of their kinds would be compiled in between.
@triton.jit(do_not_specialize=["table_stride", "num_parts", "first_part", "window"])  # type: ignore[untyped-decorator]
def _attend_tile(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_tables: torch.Tensor,
    tiles: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    q_stride: int,
    table_stride: int,
    num_parts: int,
    first_part: int,
    scale: float,
    window: int,
    TILE_WIDTH: tl.constexpr,
    GROUP: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    IS_PREFIX: tl.constexpr,
    HAS_WINDOW: tl.constexpr,
) -> None:
    """Attend one tile's rows of one KV head."""
    tile = tiles + tl.program_id(0).to(tl.int64) * TILE_WIDTH
    kv_head = tl.program_id(1)
    seq_id = tl.load(tile).to(tl.int64)
    token = tl.load(tile + 1).to(tl.int64)
    position = tl.load(tile + 2)
    first_row = tl.load(tile + 3)
    end_row = tl.load(tile + 4)
    begin = tl.load(tile + 5)
    end = tl.load(tile + 6)
    place = tl.load(tile + 7).to(tl.int64)
    part = first_part + tl.load(tile + 8)

    rows = first_row + tl.arange(0, BLOCK_M)
    steps = rows // GROUP
    heads = kv_head * GROUP + rows % GROUP
    dims = tl.arange(0, BLOCK_D)
    is_row = rows < end_row
    is_inside = is_row[:, None] & (dims < HEAD_DIM)[None, :]
    q_at = (token + steps) * q_stride + heads * HEAD_DIM
    queries = tl.load(q + q_at[:, None] + dims[None, :], mask=is_inside, other=0.0)
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    peak = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    table = block_tables + seq_id * table_stride
    positions = position + steps
    if IS_PREFIX:
        positions = tl.zeros([BLOCK_M], dtype=tl.int32) + (end - 1)
    # Whole blocks of keys that every row sees need no mask; a window hides some from the left.
    middle = begin
    if not HAS_WINDOW:
        seen_by_all = end
        if not IS_PREFIX:
            seen_by_all = tl.minimum(end, position + first_row // GROUP + 1)
        middle = begin + tl.maximum(seen_by_all - begin, 0) // BLOCK_N * BLOCK_N
        acc, peak, total = attend_span(
            acc, peak, total, queries, positions, table, k_cache, v_cache, kv_head,
            begin, middle, scale, window,
            KV_HEADS, HEAD_DIM, BLOCK_SIZE, BLOCK_N, BLOCK_D, False, False,
        )  # fmt: skip
    acc, peak, total = attend_span(
        acc, peak, total, queries, positions, table, k_cache, v_cache, kv_head,
        middle, end, scale, window,
        KV_HEADS, HEAD_DIM, BLOCK_SIZE, BLOCK_N, BLOCK_D, True, HAS_WINDOW,
    )  # fmt: skip
    values, sizes = close_span(acc, peak, total)
    if IS_PREFIX:
        places = ((place + steps) * (KV_HEADS * GROUP) + heads) * num_parts + part
        tl.store(lse + places, sizes, mask=is_row)
    else:
        places = (token + steps) * (KV_HEADS * GROUP) + heads
    out_at = out + places[:, None] * HEAD_DIM + dims[None, :]
    tl.store(out_at, values, mask=is_inside)
