"""Paged attention equals its definition, for every mix, block size and length."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from plait.kernels.attention import paged_attention, plan_attention
from plait.kernels.attention.reference import paged_attention as reference

HEAD_DIM, KV_HEADS = 8, 2


def relative_rms(found: Tensor, wanted: Tensor) -> float:
    """Measure the error; NaN if a single number is."""
    return float((found - wanted).pow(2).mean().sqrt() / wanted.pow(2).mean().sqrt())


class Case:
    """A pool full of NaN, in which `spans` = (new tokens, context) have scattered blocks."""

    def __init__(
        self, spans: list[tuple[int, int]], block_size: int, group: int = 3, seed: int = 0
    ) -> None:
        rng = torch.Generator().manual_seed(seed)
        counts = [-(-context // block_size) for _, context in spans]
        num_blocks = sum(counts) + 3
        shape = (num_blocks, block_size, KV_HEADS, HEAD_DIM)
        self.k, self.v = torch.full(shape, torch.nan), torch.full(shape, torch.nan)
        free = torch.randperm(num_blocks, generator=rng).tolist()
        self.tables = torch.zeros(len(spans), max(counts), dtype=torch.int32)
        for row, ((_, context), count) in enumerate(zip(spans, counts, strict=True)):
            self.tables[row, :count] = torch.tensor([free.pop() for _ in range(count)])
            for place in range(context):
                block = int(self.tables[row, place // block_size])
                for cache in (self.k, self.v):
                    cache[block, place % block_size] = torch.randn(
                        KV_HEADS, HEAD_DIM, generator=rng
                    )
        news = [new for new, _ in spans]
        self.cu_seqlens = torch.tensor([0, *itertools.accumulate(news)], dtype=torch.int32)
        self.seq_lens = torch.tensor([context for _, context in spans], dtype=torch.int32)
        self.q = torch.randn(sum(news), KV_HEADS * group, HEAD_DIM, generator=rng)

    def fast(self, dtype: torch.dtype = torch.float32, window: int | None = None) -> Tensor:
        plan = plan_attention(
            self.cu_seqlens,
            self.seq_lens,
            self.tables,
            block_size=self.k.shape[1],
            dtype=dtype,
            device=torch.device("cpu"),
            window=window,
        )
        caches = self.k.to(dtype), self.v.to(dtype)
        return paged_attention(self.q.to(dtype), *caches, plan, 0.3)

    def slow(self, window: int | None = None) -> Tensor:
        batch = self.cu_seqlens, self.seq_lens, self.tables
        return reference(self.q, self.k, self.v, *batch, 0.3, window)

    def poison(self, window: int) -> None:
        """Put NaN where no new token may look."""
        news = self.cu_seqlens.diff().tolist()
        for row, (new, context) in enumerate(zip(news, self.seq_lens.tolist(), strict=True)):
            for place in range(context - new + 1 - window):
                block, at = self.tables[row, place // self.k.shape[1]], place % self.k.shape[1]
                self.k[block, at] = self.v[block, at] = torch.nan


MIXES = {
    "one token": [(1, 1)],
    "one whole prompt": [(63, 63)],
    "a prompt longer than a block of the kernel": [(500, 500)],
    "a later chunk": [(63, 500)],
    "one decode": [(1, 500)],
    "decodes of one length": [(1, 63)] * 4,
    "decodes of many lengths": [(1, 1), (1, 500), (1, 63), (1, 64), (1, 17), (1, 480)],
    "short extensions": [(3, 70), (7, 71), (2, 400), (32, 40), (5, 5)],
    "decodes, then chunks": [(1, 63), (1, 90), (33, 33), (40, 200)],
    "everything, out of order": [(40, 100), (1, 5), (2, 9), (63, 63), (1, 300), (9, 9), (1, 7)],
}


@pytest.mark.parametrize("block_size", [1, 16, 32, 64])
@pytest.mark.parametrize("mix", MIXES)
def test_a_batch_equals_its_definition(mix: str, block_size: int) -> None:
    case = Case(MIXES[mix], block_size)
    assert relative_rms(case.fast(), case.slow()) < 1e-6  # fp32 sums of up to 500 terms


@pytest.mark.parametrize("window", [1, 16, 50, 500])
@pytest.mark.parametrize("mix", MIXES)
def test_a_window_hides_what_lies_before_it(mix: str, window: int) -> None:
    case = Case(MIXES[mix], 16)
    case.poison(window)
    assert relative_rms(case.fast(window=window), case.slow(window)) < 1e-6


@pytest.mark.parametrize("group", [1, 2, 7])
def test_any_number_of_heads_shares_a_kv_head(group: int) -> None:
    case = Case(MIXES["everything, out of order"], 16, group=group)
    assert relative_rms(case.fast(), case.slow()) < 1e-6


def test_bfloat16_stays_within_its_precision() -> None:
    case = Case(MIXES["everything, out of order"], 16)
    assert relative_rms(case.fast(torch.bfloat16).float(), case.slow()) < 1e-2  # 8 bits


def test_a_row_does_not_depend_on_its_company() -> None:
    spans = MIXES["everything, out of order"]
    case = Case(spans, 16)
    together = case.fast()
    for row, (new, context) in enumerate(spans):
        begin = int(case.cu_seqlens[row])
        plan = plan_attention(
            torch.tensor([0, new]),
            torch.tensor([context]),
            case.tables[row : row + 1],
            block_size=16,
            dtype=torch.float32,
            device=torch.device("cpu"),
        )
        alone = paged_attention(case.q[begin : begin + new], case.k, case.v, plan, 0.3)
        torch.testing.assert_close(together[begin : begin + new], alone, rtol=0, atol=1e-5)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 90)), min_size=1, max_size=7),
    st.sampled_from([1, 16, 32]),
)
def test_any_mix_equals_its_definition(spans: list[tuple[int, int]], block_size: int) -> None:
    case = Case([(new, old + new) for new, old in spans], block_size)
    assert relative_rms(case.fast(), case.slow()) < 1e-6


def test_sequences_may_share_blocks() -> None:
    case = Case([(1, 63), (1, 64)], 16)
    case.tables[1, :3] = case.tables[0, :3]
    assert relative_rms(case.fast(), case.slow()) < 1e-6


def test_like_lengths_are_planned_as_one_group() -> None:
    case = Case([(1, 100 + i) for i in range(16)], 16)
    plan = plan_attention(
        case.cu_seqlens,
        case.seq_lens,
        case.tables,
        block_size=16,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )
    assert len(plan.groups) == 1
    assert plan.order is None
