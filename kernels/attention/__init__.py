"""Attention over a paged KV cache: prefill chunks and decodes, mixed, in one call.

The plan decides the kernels: `plan_attention` is for `cpu.py`, which is made of torch's own
operations and runs anywhere; `plan_gpu` is for Triton's.
"""

from __future__ import annotations

from torch import Tensor

from . import cpu
from .gpu_plan import GpuPlan, PlanShape, plan_gpu
from .plan import AttentionGroup, AttentionPlan, plan_attention

__all__ = [
    "AttentionGroup",
    "AttentionPlan",
    "GpuPlan",
    "PlanShape",
    "paged_attention",
    "plan_attention",
    "plan_gpu",
]


def paged_attention(
    q: Tensor,  # [T, H, D]
    k_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    v_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    plan: AttentionPlan | GpuPlan,
    scale: float,
) -> Tensor:
    """Give what `reference.paged_attention` gives for the batch that was planned; [T, H, D]."""
    if isinstance(plan, GpuPlan):
        from . import triton

        return triton.paged_attention(q, k_cache, v_cache, plan, scale)
    return cpu.paged_attention(q, k_cache, v_cache, plan, scale)
