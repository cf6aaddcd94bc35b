"""Times of paged attention on a Llama's heads: 32 of 128 numbers, 8 of KV, blocks of 16, bf16."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor

from plait.kernels.attention import GpuPlan, PlanShape, paged_attention
from plait.kernels.attention.gpu_plan import Arrays, plan_gpu
from plait.kernels.tuning import choose, shape_class

from .floors import seconds

HEADS, KV_HEADS, HEAD_DIM, BLOCK_SIZE = 32, 8, 128, 16
DTYPE = torch.bfloat16


def make_plan(
    device: torch.device, news: list[int], context: int, num_shared: int = 0
) -> tuple[GpuPlan, Tensor, Tensor, Tensor]:
    """Give a plan, q and caches of sequences of one context; blocks are scattered."""
    num_blocks = -(-context // BLOCK_SIZE)
    order = np.random.default_rng(0).permutation(len(news) * num_blocks).astype(np.int32)
    tables = order.reshape(len(news), num_blocks)
    tables[:, : num_shared // BLOCK_SIZE] = tables[0, : num_shared // BLOCK_SIZE]
    size = shape_class(HEAD_DIM, DTYPE)
    shape = PlanShape(
        HEADS,
        KV_HEADS,
        BLOCK_SIZE,
        choose("extend", size, device).block_m,
        choose("prefix", size, device).block_m,
    )

    def to_device(arrays: Arrays) -> dict[str, Tensor]:
        return {
            name: torch.from_numpy(np.ascontiguousarray(array)).to(device)
            for name, array in arrays.items()
        }

    bounds = np.array([0, *np.cumsum(news)], np.int32)
    lengths = np.full(len(news), context, np.int32)
    plan = plan_gpu(bounds, lengths, tables, shape, to_device)
    q = torch.randn(sum(news), HEADS, HEAD_DIM, device=device).to(DTYPE)
    caches = torch.empty(2, tables.size, BLOCK_SIZE, KV_HEADS, HEAD_DIM, dtype=DTYPE, device=device)
    caches.normal_()
    return plan, q, caches[0], caches[1]


def attend_seconds(device: torch.device, news: list[int], context: int, shared: int = 0) -> float:
    """Time one layer's attention."""
    plan, q, k_cache, v_cache = make_plan(device, news, context, shared)
    return seconds(partial(paged_attention, q, k_cache, v_cache, plan, HEAD_DIM**-0.5))


def decode_seconds(device: torch.device, num_seqs: int, context: int) -> tuple[float, int]:
    """Give the time of a decode step and the bytes of K and V that it reads."""
    num_bytes = 2 * num_seqs * context * KV_HEADS * HEAD_DIM * DTYPE.itemsize
    return attend_seconds(device, [1] * num_seqs, context), num_bytes


def prefill_seconds(device: torch.device, context: int) -> tuple[float, int]:
    """Give the time of a causal prefill and the operations of its lower triangle."""
    num_pairs = context * (context + 1) // 2
    return attend_seconds(device, [context], context), 4 * HEADS * HEAD_DIM * num_pairs


def shared_seconds(device: torch.device, num_seqs: int, context: int) -> tuple[float, float]:
    """Give the time of a decode step without a shared prefix and with one, of all but 16."""
    apart = attend_seconds(device, [1] * num_seqs, context)
    return apart, attend_seconds(device, [1] * num_seqs, context, context - 16)
