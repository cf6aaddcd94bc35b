"""Rotary embedding and the store of K and V in one kernel. Needs the package `triton`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


def rope_and_store(
    qkv: Tensor,  # [T, H + 2 * KVH, D]
    positions: Tensor,  # [T]
    inv_freq: Tensor,  # [D / 2]
    k_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    v_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    slot_mapping: Tensor,  # [T]
) -> Tensor:
    """Turn q and k, store k and v at their slots, and give q; [T, H, D].

    Sines and cosines are fp32 to the end; the definition rounds them to the dtype of `qkv`.
    """
    num_tokens, width, head_dim = qkv.shape
    kv_heads = k_cache.shape[2]
    num_heads = width - 2 * kv_heads
    assert qkv.is_contiguous()
    assert k_cache.is_contiguous()
    assert v_cache.is_contiguous()
    q = torch.empty(num_tokens, num_heads, head_dim, dtype=qkv.dtype, device=qkv.device)
    if num_tokens:
        _rope_and_store[(num_tokens, width)](
            qkv,
            positions,
            inv_freq,
            q,
            k_cache,
            v_cache,
            slot_mapping,
            HEADS=num_heads,
            KV_HEADS=kv_heads,
            HALF=head_dim // 2,
            BLOCK=triton.next_power_of_2(head_dim // 2),
            num_warps=1,
        )
    return q


@triton.jit  # type: ignore[untyped-decorator]
def _rope_and_store(
    qkv: torch.Tensor,
    positions: torch.Tensor,
    inv_freq: torch.Tensor,
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Turn, or for a V head only copy, one head of one token."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    pairs = tl.arange(0, BLOCK)
    is_pair = pairs < HALF
    source = qkv + (token * (HEADS + 2 * KV_HEADS) + head) * (2 * HALF) + pairs
    first = tl.load(source, mask=is_pair, other=0.0)
    second = tl.load(source + HALF, mask=is_pair, other=0.0)
    slot = tl.load(slot_mapping + token).to(tl.int64)
    if head >= HEADS + KV_HEADS:
        v_out = v_cache + (slot * KV_HEADS + head - HEADS - KV_HEADS) * (2 * HALF) + pairs
        tl.store(v_out, first, mask=is_pair)
        tl.store(v_out + HALF, second, mask=is_pair)
    else:
        frequency = tl.load(inv_freq + pairs, mask=is_pair, other=0.0)
        angle = tl.load(positions + token).to(tl.float32) * frequency
        cos, sin = tl.cos(angle), tl.sin(angle)
        a, b = first.to(tl.float32), second.to(tl.float32)
        turned_first = (a * cos - b * sin).to(first.dtype)
        turned_second = (b * cos + a * sin).to(first.dtype)
        if head < HEADS:
            q_out = q + (token * HEADS + head) * (2 * HALF) + pairs
            tl.store(q_out, turned_first, mask=is_pair)
            tl.store(q_out + HALF, turned_second, mask=is_pair)
        else:
            k_out = k_cache + (slot * KV_HEADS + head - HEADS) * (2 * HALF) + pairs
            tl.store(k_out, turned_first, mask=is_pair)
            tl.store(k_out + HALF, turned_second, mask=is_pair)
