"""Paged attention by gathering K and V of like sequences, then torch's fused attention."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .plan import AttentionGroup, AttentionPlan


def paged_attention(
    q: Tensor,  # [T, H, D]
    k_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    v_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    plan: AttentionPlan,
    scale: float,
) -> Tensor:
    """Give what `reference.paged_attention` gives for the batch that was planned; [T, H, D]."""
    outs = [_attend(q, k_cache, v_cache, group, scale) for group in plan.groups]
    out = outs[0] if len(outs) == 1 else torch.cat(outs)
    return out if plan.order is None else out.index_select(0, plan.order)


def _attend(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, group: AttentionGroup, scale: float
) -> Tensor:
    """Attend one group; [num_seqs * query_len, H, D]."""
    num_heads, head_dim = q.shape[1:]
    rows = q if group.rows is None else q.index_select(0, group.rows)
    rows = rows.reshape(group.num_seqs, group.query_len, num_heads, head_dim)
    out = F.scaled_dot_product_attention(
        rows.transpose(1, 2),
        _gather(k_cache, group),
        _gather(v_cache, group),
        attn_mask=group.mask,
        is_causal=group.is_causal,
        scale=scale,
        enable_gqa=True,
    )  # [num_seqs, H, query_len, D]
    return out.transpose(1, 2).reshape(-1, num_heads, head_dim)


def _gather(cache: Tensor, group: AttentionGroup) -> Tensor:
    """Copy the contexts of a group out of the cache; a view [num_seqs, KVH, context_len, D]."""
    num_kv_heads, head_dim = cache.shape[2:]
    flat = cache.view(-1, num_kv_heads * head_dim).index_select(0, group.slots)
    shape = (group.num_seqs, group.context_len, num_kv_heads, head_dim)
    return flat.view(shape).transpose(1, 2)
