"""Attention kernels against their definition, over pools whose unused slots are NaN."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from plait.kernels.attention import PlanShape, reference
from plait.kernels.attention.gpu_plan import Arrays, plan_gpu
from plait.kernels.tuning import choose, shape_class

from .case import Case, bound_of, random, relative_rms

Spans = tuple[tuple[int, int], ...]  # (new tokens, context)


@dataclass(frozen=True, slots=True)
class Mix:
    """A batch to attend. The first `shared` tokens of all its sequences are the same blocks."""

    spans: Spans
    block_size: int = 16
    kv_heads: int = 2
    group: int = 3
    head_dim: int = 64
    dtype: torch.dtype = torch.float32
    window: int | None = None
    shared: int = 0
    tile_rows: int = 32

    @property
    def name(self) -> str:
        """Say what is special about it."""
        lengths = ",".join(f"{new}/{context}" for new, context in self.spans[:4])
        more = "..." if len(self.spans) > 4 else ""
        return (
            f"attention {lengths}{more} block {self.block_size} heads {self.kv_heads}x{self.group}"
            f"x{self.head_dim} {str(self.dtype)[6:]}"
            + (f" window {self.window}" if self.window is not None else "")
            + (f" shared {self.shared}" if self.shared else "")
        )


@dataclass(frozen=True, slots=True)
class Pool:
    """The tensors of a mix, on the CPU."""

    q: Tensor
    k: Tensor
    v: Tensor
    cu_seqlens: Tensor
    seq_lens: Tensor
    tables: Tensor


def make_pool(mix: Mix) -> Pool:
    """Scatter a mix's sequences over a pool full of NaN."""
    rng = torch.Generator().manual_seed(0)
    counts = [-(-context // mix.block_size) for _, context in mix.spans]
    num_blocks = sum(counts) + 3
    free = torch.randperm(num_blocks, generator=rng).tolist()
    tables = torch.zeros(len(counts), max(counts), dtype=torch.int32)
    for row, count in enumerate(counts):
        tables[row, :count] = torch.tensor([free.pop() for _ in range(count)])
    tables[:, : mix.shared // mix.block_size] = tables[0, : mix.shared // mix.block_size]
    is_used = torch.zeros(num_blocks, mix.block_size, dtype=torch.bool)
    for row, (_, context) in enumerate(mix.spans):
        places = torch.arange(context)
        is_used[tables[row, places // mix.block_size].long(), places % mix.block_size] = True
    shape = (num_blocks, mix.block_size, mix.kv_heads, mix.head_dim)
    k, v = random(*shape, seed=1), random(*shape, seed=2)
    k[~is_used], v[~is_used] = torch.nan, torch.nan
    news = [new for new, _ in mix.spans]
    return Pool(
        random(sum(news), mix.kv_heads * mix.group, mix.head_dim),
        k,
        v,
        torch.tensor([0, *itertools.accumulate(news)], dtype=torch.int32),
        torch.tensor([context for _, context in mix.spans], dtype=torch.int32),
        tables,
    )


def attention_error(mix: Mix, device: torch.device) -> float:
    """Plan and attend a mix on a device."""
    from plait.kernels.attention.triton import paged_attention

    pool = make_pool(mix)
    shape = PlanShape(
        mix.kv_heads * mix.group,
        mix.kv_heads,
        mix.block_size,
        mix.tile_rows,
        mix.tile_rows,
        mix.window,
    )

    def to_device(arrays: Arrays) -> dict[str, Tensor]:
        return {
            name: torch.from_numpy(np.ascontiguousarray(array)).to(device)
            for name, array in arrays.items()
        }

    plan = plan_gpu(
        pool.cu_seqlens.numpy(), pool.seq_lens.numpy(), pool.tables.numpy(), shape, to_device
    )
    assert (len(plan.prefix_tiles) > 0) == (mix.shared > 0)
    moved = [tensor.to(device, mix.dtype) for tensor in (pool.q, pool.k, pool.v)]
    found = paged_attention(moved[0], moved[1], moved[2], plan, 0.3)
    wanted = reference.paged_attention(
        moved[0].float().cpu(),
        moved[1].float().cpu(),
        moved[2].float().cpu(),
        pool.cu_seqlens,
        pool.seq_lens,
        pool.tables,
        0.3,
        mix.window,
    )
    return relative_rms(found, wanted)


def merge_error(num_parts: int, head_dim: int, device: torch.device) -> float:
    """Merge parts of which some are empty, and NaN."""
    from plait.kernels.attention.triton_decode import merge

    parts, lse = random(3, 2, num_parts, head_dim), random(3, 2, num_parts)
    is_empty = torch.rand(lse.shape, generator=torch.Generator().manual_seed(1)) < 0.4
    lse[is_empty], parts[is_empty] = -torch.inf, torch.nan
    lse[1, 1], parts[1, 1] = -torch.inf, torch.nan
    rows = torch.tensor([4, 0, 2], dtype=torch.int32)
    found = torch.full((5, 2, head_dim), torch.nan, device=device)
    wanted = torch.full((5, 2, head_dim), torch.nan)
    merge(parts.to(device), lse.to(device), rows.to(device), found)
    wanted[rows.long()] = reference.merge(parts, lse)
    return relative_rms(found.nan_to_num(9.0), wanted.nan_to_num(9.0))


def attention_cases(*, is_tiny: bool) -> Iterator[Case]:
    """Give the mixes to check; the tiny ones are for the interpreter."""
    decodes = Mix(((1, 1), (1, 17), (1, 63), (1, 130)))
    mixed = Mix(((17, 17), (1, 63), (5, 130), (1, 1), (63, 70)), head_dim=16)
    short = torch.bfloat16
    shared = Mix(((1, 257), (1, 263), (1, 300), (1, 290)), shared=256, head_dim=16, tile_rows=16)
    mixes = [
        *(replace(decodes, block_size=size) for size in (1, 32, 64)),
        *(replace(mixed, block_size=size) for size in (1, 32, 64)),
        *(replace(decodes, group=group, head_dim=16) for group in (1, 2, 4, 6, 7, 8)),
        *(replace(mixed, group=group) for group in (1, 5, 8)),
        *(replace(base, head_dim=size) for base in (decodes, mixed) for size in (16, 48, 128)),
        *(replace(base, dtype=short) for base in (decodes, mixed, shared)),
        *(replace(base, window=20, head_dim=16) for base in (decodes, mixed)),
        replace(decodes, spans=((1, 600), (1, 1100))),
        shared,
        replace(shared, spans=((5, 300), *shared.spans, (1, 1))),
        replace(shared, block_size=64, group=1),
    ]
    if not is_tiny:
        for size in (64, 128):
            for base in (mixed, shared):
                rows = choose("extend", shape_class(size, short), torch.device("cpu")).block_m
                mixes.append(replace(base, head_dim=size, dtype=short, tile_rows=rows))
        long = ((1, 5000), (300, 4096), (1, 1), (17, 2000))
        for size in (64, 128):
            for dtype in (torch.float32, short):
                mixes.append(Mix(long, 16, 4, 4, size, dtype))
                mixes.append(Mix(long, 16, 4, 4, size, dtype, window=1000, tile_rows=64))
    for mix in mixes:
        yield Case(mix.name, partial(attention_error, mix), bound_of(mix.dtype))
    for num_parts in (1, 5, 8):
        yield Case(f"merge {num_parts} parts", partial(merge_error, num_parts, 48), 1e-6)
