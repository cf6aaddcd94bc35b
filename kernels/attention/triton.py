"""Paged attention by Triton: decodes split, the rest in tiles, shared prefixes once.

Needs the package `triton`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .gpu_plan import PREFIX_SPLITS, GpuPlan
from .triton_decode import decode, merge
from .triton_tiles import attend_prefix, extend


def paged_attention(
    q: Tensor,  # [T, H, D]
    k_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    v_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    plan: GpuPlan,
    scale: float,
) -> Tensor:
    """Give what `reference.paged_attention` gives for the batch that was planned; [T, H, D].

    Allocates on the device, never waits for it.
    """
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    shape = plan.shape
    extend(
        q,
        k_cache,
        v_cache,
        plan.block_tables,
        plan.tiles,
        out,
        scale=scale,
        block_m=shape.extend_rows,
        window=shape.window,
    )
    if len(plan.decode_ids):
        _decode(q, k_cache, v_cache, plan, scale, out)
    return out


def _decode(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, plan: GpuPlan, scale: float, out: Tensor
) -> None:
    """Write the rows of the decodes: prefixes and rests in parts, then merged."""
    has_prefix = len(plan.prefix_tiles) > 0
    num_parts = plan.num_splits + (PREFIX_SPLITS if has_prefix else 0)
    sizes = (len(plan.decode_ids), q.shape[1], num_parts)
    parts = torch.empty(*sizes, q.shape[2], dtype=torch.float32, device=q.device)
    # A decode outside every shared prefix leaves the prefix's parts unwritten.
    lse = torch.full(sizes, -torch.inf, dtype=torch.float32, device=q.device)
    decode(
        q,
        k_cache,
        v_cache,
        plan.cu_seqlens,
        plan.seq_lens,
        plan.block_tables,
        plan.decode_ids,
        plan.begins,
        parts,
        lse,
        num_splits=plan.num_splits,
        scale=scale,
        window=plan.shape.window,
    )
    if has_prefix:
        attend_prefix(
            q,
            k_cache,
            v_cache,
            plan.block_tables,
            plan.prefix_tiles,
            parts,
            lse,
            first_part=plan.num_splits,
            scale=scale,
            block_m=plan.shape.prefix_rows,
        )
    merge(parts, lse, plan.decode_rows, out)
