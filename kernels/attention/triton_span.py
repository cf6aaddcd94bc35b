"""The inner loop of every attention kernel: queries against a span of paged keys.

After: FlashAttention-2, Dao 2023: running peak and total, one pass. Scores are in base 2, so
that the exponential is one instruction.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def attend_span(
    acc: torch.Tensor,  # [M, BLOCK_D] fp32
    peak: torch.Tensor,  # [M] fp32, -inf where nothing was seen yet
    total: torch.Tensor,  # [M] fp32
    q: torch.Tensor,  # [M, BLOCK_D]
    positions: torch.Tensor,  # [M] the last key that each row may see
    table: torch.Tensor,  # the blocks of the sequence
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    kv_head: int,
    begin: int,
    end: int,
    scale: float,  # already times log2(e)
    window: int,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    IS_MASKED: tl.constexpr,
    HAS_WINDOW: tl.constexpr,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Add keys `begin` to `end` to the running sums; without a mask all rows see all of them."""
    dims = tl.arange(0, BLOCK_D)
    is_dim = dims < HEAD_DIM
    for start in range(begin, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        is_key = keys < end
        blocks = tl.load(table + keys // BLOCK_SIZE, mask=is_key, other=0)
        slots = blocks.to(tl.int64) * BLOCK_SIZE + keys % BLOCK_SIZE
        at = (slots * KV_HEADS + kv_head) * HEAD_DIM
        k_at = k_cache + at[None, :] + dims[:, None]
        k = tl.load(k_at, mask=is_key[None, :] & is_dim[:, None], other=0.0)
        scores = tl.dot(q, k, input_precision="ieee") * scale  # [M, BLOCK_N]
        if IS_MASKED:
            is_seen = is_key[None, :] & (keys[None, :] <= positions[:, None])
            if HAS_WINDOW:
                is_seen = is_seen & (positions[:, None] - keys[None, :] < window)
            scores = tl.where(is_seen, scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        # A row that has seen nothing has no peak: -inf minus -inf would be NaN.
        base = tl.where(new_peak == float("-inf"), 0.0, new_peak)
        weights = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(peak - base)
        v_at = v_cache + at[:, None] + dims[None, :]
        v = tl.load(v_at, mask=is_key[:, None] & is_dim[None, :], other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        total = total * shrink + tl.sum(weights, 1)
        peak = new_peak
    return acc, peak, total


@triton.jit  # type: ignore[untyped-decorator]
def close_span(
    acc: torch.Tensor, peak: torch.Tensor, total: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Give a span's attention and its log2-sum-exp2; zeros and -inf where nothing was seen."""
    is_empty = total == 0.0
    out = acc / tl.where(is_empty, 1.0, total)[:, None]
    lse = tl.where(is_empty, float("-inf"), peak + tl.log2(tl.where(is_empty, 1.0, total)))
    return out, lse
