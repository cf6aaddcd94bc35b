"""Rows drawn together where their logits lie are the rows drawn one by one.

The kernel's definition stands in for the kernel, which benchmarks/gpu checks against it.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from plait.kernels.sampling import reference
from plait.kernels.sampling.gpu import SamplingRows
from plait.runtime import sample as sampler
from plait.runtime import sample_gpu
from plait.runtime.errors import RequestError
from plait.runtime.grammar.spec import Bitmask
from plait.runtime.sample import SampleRow, sample
from plait.runtime.sample_gpu import ROWS_AT_ONCE, gather_rows
from plait.runtime.sequence import SamplingParams

WIDTH, VOCAB, ABSENT = 70, 67, frozenset((5,))
PARAMS = [
    SamplingParams(temperature=0.0),
    SamplingParams(),
    SamplingParams(temperature=0.6, top_k=4),
    SamplingParams(temperature=1e300, top_p=0.7, min_p=0.1),
    SamplingParams(temperature=1e40, top_k=3),
    SamplingParams(top_k=1000, top_p=0.4),
]


def mask(density: float, seed: int) -> Bitmask:
    bits = np.random.default_rng(seed).random(96) < density
    bits[::9] |= density > 0
    return np.packbits(bits, bitorder="little").view(np.int32)


def some_rows() -> list[SampleRow]:
    masks = [None, mask(0.5, 1), mask(0.02, 2), mask(0.0, 3)]
    pairs = itertools.product(PARAMS, masks)
    return [
        SampleRow(params, seed=i, position=i, mask=mask, forbid_eos=i % 2 == 0)
        for i, (params, mask) in enumerate(pairs)
    ]


def test_rows_are_drawn_as_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = some_rows()
    logits = torch.randn(len(rows), WIDTH, generator=torch.Generator().manual_seed(0)) * 2
    kept = logits.clone()
    wanted = sample(logits, rows, VOCAB, {0, 9}, ABSENT)
    monkeypatch.setattr(sampler, "uses_triton", lambda tensor: True)
    found = sample(logits, rows, VOCAB, {0, 9}, ABSENT)
    assert torch.equal(logits, kept)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(one, RequestError):
            assert isinstance(other, RequestError)
            assert one.args == other.args
        else:
            assert one == other


def test_the_kernel_gets_a_dense_column_of_each_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[SamplingRows] = []

    def draw(logits: torch.Tensor, rows: SamplingRows) -> torch.Tensor:
        given.append(rows)
        return torch.zeros(len(logits), dtype=torch.int64)

    monkeypatch.setattr(sampler, "uses_triton", lambda tensor: True)
    monkeypatch.setattr(sample_gpu, "draw", draw)
    params = [SamplingParams(temperature=t, top_p=p) for t, p in ((0.5, 0.25), (2.0, 0.75))]
    sample(torch.zeros(2, WIDTH), [SampleRow(p, 1, 1) for p in params], VOCAB, {0}, ABSENT)
    columns = [getattr(given[0], name) for name in SamplingRows.__slots__]
    assert all(column.is_contiguous() for column in columns)
    assert given[0].temperature.tolist() == [0.5, 2.0]
    assert given[0].top_p.tolist() == [0.25, 0.75]


def test_rows_that_nothing_is_wrong_with_are_drawn_beside_one_that_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampler, "uses_triton", lambda tensor: True)
    logits = torch.zeros(3, WIDTH)
    logits[1, 3] = torch.nan
    found = sample(logits, [SampleRow(SamplingParams(), 1, 1)] * 3, VOCAB, {0}, ABSENT)
    assert isinstance(found[1], RequestError)
    assert found[0] == found[2]
    assert isinstance(found[0], int)


@pytest.mark.parametrize("num_rows", [0, 1, ROWS_AT_ONCE + 6])
def test_rows_are_scored_as_on_the_cpu(num_rows: int) -> None:
    rng = np.random.default_rng(num_rows)
    logits = rng.normal(0, 3, (num_rows, WIDTH)).astype(np.float32)
    logits[3::10, 7] = np.nan
    ids = [rng.integers(0, WIDTH, 1 + i % 3).tolist() for i in range(num_rows)]
    found = gather_rows(torch.from_numpy(logits), ids)
    for row, wanted in zip(found, reference.logprobs(logits, ids), strict=True):
        assert row == pytest.approx(wanted, abs=1e-5, nan_ok=True)  # e^x is fp32
