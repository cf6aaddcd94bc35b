"""Attention of sequences with one new token: split over the keys, then merged.

After: FlashDecoding, Dao et al. 2023. How many parts a sequence has is fixed when the kernel is
launched, where each part begins is found on the device: a CUDA graph serves any lengths.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..tuning import Config, choose, shape_class
from .triton_span import attend_span, close_span


def decode(
    q: Tensor,  # [T, H, D]
    k_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    v_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    cu_seqlens: Tensor,  # [n + 1]
    seq_lens: Tensor,  # [n]
    block_tables: Tensor,  # [n, max blocks]
    seq_ids: Tensor,  # [d] the sequences to compute, each with one new token
    begins: Tensor,  # [d] keys before these are another kernel's
    parts: Tensor,  # [d, H, num parts, D] fp32
    lse: Tensor,  # [d, H, num parts] fp32
    *,
    num_splits: int,
    scale: float,
    window: int | None = None,
    config: Config | None = None,
) -> None:
    """Write the first `num_splits` parts of each sequence's attention, and their log2-sum-exp2.

    A sequence of length 0 gives empty parts: their lse is -inf.
    """
    if len(seq_ids) == 0:
        return
    num_heads, head_dim = q.shape[1:]
    kv_heads = k_cache.shape[2]
    assert q.stride(1) == head_dim
    assert q.stride(2) == block_tables.stride(1) == 1
    assert k_cache.is_contiguous()
    assert v_cache.is_contiguous()
    assert parts.is_contiguous()
    assert lse.is_contiguous()
    config = config or choose("decode", shape_class(head_dim, k_cache.dtype), q.device)
    _decode[(len(seq_ids), kv_heads, num_splits)](
        q,
        k_cache,
        v_cache,
        cu_seqlens,
        seq_lens,
        block_tables,
        seq_ids,
        begins,
        parts,
        lse,
        q.stride(0),
        block_tables.stride(0),
        parts.shape[2],
        scale * math.log2(math.e),
        window or 0,
        num_splits,
        GROUP=num_heads // kv_heads,
        KV_HEADS=kv_heads,
        HEAD_DIM=head_dim,
        BLOCK_SIZE=k_cache.shape[1],
        BLOCK_M=max(16, triton.next_power_of_2(num_heads // kv_heads)),
        BLOCK_N=config.block_n,
        BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
        HAS_WINDOW=window is not None,
        num_warps=config.num_warps,
        num_stages=config.num_stages,
    )


def merge(parts: Tensor, lse: Tensor, rows: Tensor, out: Tensor) -> None:
    """Merge parts [d, H, P, D] by their `lse` [d, H, P] into rows `rows` [d] of `out` [T, H, D].

    Parts with an lse of -inf are not read; where all are, the row is zero.
    """
    assert parts.is_contiguous()
    assert lse.is_contiguous()
    assert out.is_contiguous()
    if len(rows) == 0:
        return
    num_heads, num_parts, head_dim = parts.shape[1:]
    _merge[(len(rows), num_heads)](
        parts,
        lse,
        rows,
        out,
        num_parts,
        HEAD_DIM=head_dim,
        BLOCK_P=triton.next_power_of_2(num_parts),
        BLOCK_D=triton.next_power_of_2(head_dim),
    )


# These change from batch to batch: a kernel for each of their kinds would be compiled in between.
@triton.jit(do_not_specialize=["table_stride", "num_parts", "window", "num_splits"])  # type: ignore[untyped-decorator]
def _decode(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    cu_seqlens: torch.Tensor,
    seq_lens: torch.Tensor,
    block_tables: torch.Tensor,
    seq_ids: torch.Tensor,
    begins: torch.Tensor,
    parts: torch.Tensor,
    lse: torch.Tensor,
    q_stride: int,
    table_stride: int,
    num_parts: int,
    scale: float,
    window: int,
    num_splits: int,
    GROUP: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    HAS_WINDOW: tl.constexpr,
) -> None:
    """Attend the heads of one KV head to one part of one sequence."""
    index = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    seq_id = tl.load(seq_ids + index).to(tl.int64)
    seq_len = tl.load(seq_lens + seq_id).to(tl.int32)
    row = tl.load(cu_seqlens + seq_id).to(tl.int64)
    begin = tl.load(begins + index).to(tl.int32)
    if HAS_WINDOW:
        begin = tl.maximum(begin, seq_len - window)
    span = tl.cdiv(tl.cdiv(tl.maximum(seq_len - begin, 0), num_splits), BLOCK_N) * BLOCK_N
    begin += split * span
    end = tl.minimum(begin + span, seq_len)

    heads = tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    is_inside = (heads < GROUP)[:, None] & (dims < HEAD_DIM)[None, :]
    all_heads = kv_head * GROUP + heads
    q_at = q + row * q_stride + all_heads[:, None] * HEAD_DIM + dims[None, :]
    queries = tl.load(q_at, mask=is_inside, other=0.0)
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    peak = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc, peak, total = attend_span(
        acc,
        peak,
        total,
        queries,
        tl.zeros([BLOCK_M], dtype=tl.int32) + (seq_len - 1),
        block_tables + seq_id * table_stride,
        k_cache,
        v_cache,
        kv_head,
        begin,
        end,
        scale,
        window,
        KV_HEADS,
        HEAD_DIM,
        BLOCK_SIZE,
        BLOCK_N,
        BLOCK_D,
        True,
        False,  # every key of the part is inside the window
    )
    part, part_lse = close_span(acc, peak, total)
    places = (index * KV_HEADS * GROUP + all_heads) * num_parts + split
    tl.store(parts + places[:, None] * HEAD_DIM + dims[None, :], part, mask=is_inside)
    tl.store(lse + places, part_lse, mask=heads < GROUP)


@triton.jit(do_not_specialize=["num_parts"])  # type: ignore[untyped-decorator]
def _merge(
    parts: torch.Tensor,
    lse: torch.Tensor,
    rows: torch.Tensor,
    out: torch.Tensor,
    num_parts: int,
    HEAD_DIM: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_D: tl.constexpr,
) -> None:
    """Merge the parts of one head of one sequence."""
    index = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    num_heads = tl.num_programs(1)
    place = (index * num_heads + head) * num_parts
    ids = tl.arange(0, BLOCK_P)
    dims = tl.arange(0, BLOCK_D)
    sizes = tl.load(lse + place + ids, mask=ids < num_parts, other=float("-inf"))
    peak = tl.max(sizes, 0)
    base = tl.where(peak == float("-inf"), 0.0, peak)
    weights = tl.exp2(sizes - base)
    is_read = (sizes != float("-inf"))[:, None] & (dims < HEAD_DIM)[None, :]
    values = tl.load(
        parts + (place + ids)[:, None] * HEAD_DIM + dims[None, :], mask=is_read, other=0.0
    )
    total = tl.sum(weights, 0)
    merged = tl.sum(values * weights[:, None], 0) / tl.where(total == 0.0, 1.0, total)
    row = tl.load(rows + index).to(tl.int64)
    out_at = out + (row * num_heads + head) * HEAD_DIM + dims
    tl.store(out_at, merged, mask=dims < HEAD_DIM)
