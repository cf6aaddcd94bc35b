"""Attention in C++ equals its definition: every mix, block size, length and shared prefix."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from plait.kernels.attention.reference import paged_attention as reference
from plait.kernels.native import Library, Reader, TiledCache, abi, plan_groups

KV_HEADS = 2


def relative_rms(found: Tensor, wanted: Tensor) -> float:
    """Measure the error; NaN if a single number is."""
    return float((found - wanted).pow(2).mean().sqrt() / wanted.pow(2).mean().sqrt())


class Case:
    """`spans` = (new tokens, context): their K and V, in scattered blocks of a pool full of NaN.

    The first `num_shared` tokens of all contexts are the same, in the same blocks. `lift` moves the
    keys up and the queries down, so that all scores lie under 0.
    """

    def __init__(
        self,
        spans: list[tuple[int, int]],
        block_size: int = 16,
        heads: int = 3,
        head_dim: int = 32,
        num_shared: int = 0,
        lift: float = 0.0,
    ) -> None:
        rng = torch.Generator().manual_seed(len(spans) + block_size)
        self.spans, self.block_size, self.heads, self.dim = spans, block_size, heads, head_dim
        counts = [-(-context // block_size) for _, context in spans]
        shared_blocks = num_shared // block_size
        self.num_blocks = sum(counts) + 3
        free = torch.randperm(self.num_blocks, generator=rng).tolist()
        trunk = [free.pop() for _ in range(shared_blocks)]
        self.tables = np.zeros((len(spans), max(counts)), np.int32)
        shape = (self.num_blocks, block_size, KV_HEADS, head_dim)
        self.k, self.v = torch.full(shape, torch.nan), torch.full(shape, torch.nan)
        for row, count in enumerate(counts):
            own = [free.pop() for _ in range(count - shared_blocks)]
            self.tables[row, :count] = trunk + own
            for place in range(spans[row][1]):
                block, at = self.tables[row, place // block_size], place % block_size
                if place >= num_shared or row == 0:
                    self.k[block, at] = torch.randn(KV_HEADS, head_dim, generator=rng)
                    self.v[block, at] = torch.randn(KV_HEADS, head_dim, generator=rng)
        self.news = [new for new, _ in spans]
        self.q = torch.randn(sum(self.news), KV_HEADS * heads, head_dim, generator=rng)
        self.k += lift
        self.q -= lift
        self.num_shared = num_shared

    def wanted(self) -> Tensor:
        starts = torch.tensor([0, *itertools.accumulate(self.news)])
        lengths = torch.tensor([context for _, context in self.spans])
        tables = torch.from_numpy(self.tables)
        return reference(self.q, self.k, self.v, starts, lengths, tables, self.dim**-0.5)

    def found(self, library: Library, *, is_bf16: bool, is_shared: bool = True) -> Tensor:
        cache = TiledCache.make(
            1, self.num_blocks * self.block_size, KV_HEADS, self.dim, is_bf16=is_bf16
        )
        cache.data.fill(255)  # NaN
        old = [[(row, p) for p in range(c - n)] for row, (n, c) in enumerate(self.spans)]
        new = [[(row, p) for p in range(c - n, c)] for row, (n, c) in enumerate(self.spans)]
        places = [place for each in old for place in each]
        if places:  # what is in the cache already: stored by a first pass
            self._run(library, cache, places, is_shared=False)
        return self._run(library, cache, [p for each in new for p in each], is_shared=is_shared)

    def _run(
        self, library: Library, cache: TiledCache, places: list[tuple[int, int]], *, is_shared: bool
    ) -> Tensor:
        rows = np.array([row for row, _ in places])
        at = np.array([place for _, place in places], np.int32)
        blocks = self.tables[rows, at // self.block_size].astype(np.int64)
        slots = blocks * self.block_size + at % self.block_size
        k, v = (x.view(-1, KV_HEADS, self.dim)[torch.from_numpy(slots)] for x in (self.k, self.v))
        is_new = len(places) == len(self.q)
        q = self.q if is_new else torch.zeros(len(places), KV_HEADS * self.heads, self.dim)
        qkv = torch.cat((q, k, v), dim=1).contiguous()
        readers = []
        for _, group in itertools.groupby(range(len(places)), key=lambda i: places[i][0]):
            mine = list(group)
            path = ((1, self.num_shared),) if is_shared and self.num_shared else ()
            readers.append(Reader(mine[0], mine[-1] + 1, int(at[mine[-1]]) + 1, path))
        tables = np.ascontiguousarray(self.tables[[places[r.begin][0] for r in readers]])
        groups = plan_groups(readers, self.heads)
        arrays = {
            "positions": at,
            "slots": slots,
            "block_tables": tables,
            "group_rows": groups.group_rows,
            "rows": groups.rows,
            "group_parts": groups.group_parts,
            "parts": groups.parts,
        }
        batch = abi.Batch(
            num_tokens=len(places),
            num_seqs=len(readers),
            max_blocks=tables.shape[1],
            block_size=self.block_size,
            num_groups=len(groups.group_rows) - 1,
            num_parts=len(groups.parts),
            **{name: array.ctypes.data for name, array in arrays.items()},
        )
        heads = KV_HEADS * self.heads
        model = abi.Model(num_heads=heads, num_kv_heads=KV_HEADS, head_dim=self.dim)
        out = torch.full((len(places), heads, self.dim), torch.nan)
        library.functions.plait_attention(
            *(ctypes.byref(x) for x in (model, cache.struct, batch)),
            0,
            qkv.data_ptr(),
            out.data_ptr(),
        )
        return out


MIXES = [
    [(1, 1)],
    [(1, 17), (1, 64), (1, 65)],
    [(5, 5), (1, 130)],
    [(40, 100), (1, 63), (3, 3), (1, 200)],
]


@pytest.mark.parametrize("spans", MIXES)
@pytest.mark.parametrize("block_size", [1, 16, 32, 64])
def test_attention_is_as_defined(
    library: Library, spans: list[tuple[int, int]], block_size: int
) -> None:
    case = Case(spans, block_size)
    assert relative_rms(case.found(library, is_bf16=False), case.wanted()) < 1e-6
    # 8 bits of K and V, whose errors average out
    assert relative_rms(case.found(library, is_bf16=True), case.wanted()) < 5e-3


@pytest.mark.parametrize(("heads", "head_dim"), [(1, 16), (2, 48), (4, 64), (7, 80), (8, 128)])
def test_heads_of_all_sizes(library: Library, heads: int, head_dim: int) -> None:
    case = Case([(9, 30), (1, 70)], heads=heads, head_dim=head_dim)
    assert relative_rms(case.found(library, is_bf16=False), case.wanted()) < 1e-6


@pytest.mark.parametrize("is_bf16", [True, False])
@pytest.mark.parametrize("lift", [0.0, 1.0])
def test_sharing_changes_no_bit(library: Library, is_bf16: bool, lift: float) -> None:
    case = Case([(1, 210 + 7 * i) for i in range(11)], num_shared=192, lift=lift)
    alone = case.found(library, is_bf16=is_bf16, is_shared=False)
    assert torch.equal(case.found(library, is_bf16=is_bf16), alone)
    assert relative_rms(alone, case.wanted()) < 5e-3


@pytest.mark.parametrize("is_bf16", [True, False])
def test_a_chunk_gives_what_its_tokens_give_one_by_one(library: Library, is_bf16: bool) -> None:
    together = Case([(70, 150)]).found(library, is_bf16=is_bf16)
    for row in (0, 1, 33, 69):
        case = Case([(70, 150)])
        case.spans, case.news = [(1, 81 + row)], [1]
        case.q = case.q[row : row + 1]
        assert torch.equal(case.found(library, is_bf16=is_bf16)[0], together[row])
