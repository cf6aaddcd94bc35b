"""The sampler: order of operations, ties, masks, faults, and independence of the batch."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.sampling import POINTS
from plait.runtime.errors import RequestError
from plait.runtime.grammar.spec import Bitmask
from plait.runtime.sample import SampleRow, gather_logprobs, point_of, sample
from plait.runtime.sequence import SamplingParams

GREEDY = SamplingParams(temperature=0.0)


def row(params: SamplingParams = GREEDY, **options: object) -> SampleRow:
    return SampleRow(params, **{"seed": 0, "position": 0} | options)  # type: ignore[arg-type]


def bitmask(ids: list[int], width: int) -> Bitmask:
    bits = np.zeros(-(-width // 32) * 32, np.uint8)
    bits[ids] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def one(logits: list[float], sample_row: SampleRow, vocab_size: int | None = None) -> int:
    size = len(logits) if vocab_size is None else vocab_size
    drawn = sample(torch.tensor([logits]), [sample_row], size, frozenset((0,)))[0]
    assert isinstance(drawn, int), drawn
    return drawn


def fault(logits: list[float], sample_row: SampleRow) -> RequestError:
    error = sample(torch.tensor([logits]), [sample_row], len(logits), frozenset((0,)))[0]
    assert isinstance(error, RequestError)
    return error


def frequencies(logits: list[float], params: SamplingParams, num: int = 4000) -> dict[int, float]:
    rows = [row(params, seed=7, position=i) for i in range(num)]
    drawn = sample(torch.tensor([logits] * num), rows, len(logits), frozenset())
    counts = Counter(d for d in drawn if isinstance(d, int))
    return {i: c / num for i, c in sorted(counts.items())}


def test_no_rows_give_nothing() -> None:
    assert sample(torch.zeros(0, 5), [], 5, frozenset()) == []


@pytest.mark.parametrize("temperature", [0.0, 1e-8, 1e-300])
def test_greedy_takes_the_lowest_of_the_largest(temperature: float) -> None:
    params = SamplingParams(temperature=temperature)
    logits = [0.0] * 49_152
    logits[40_000] = logits[17] = logits[20_001] = 3.0
    assert one(logits, row(params)) == 17


def test_a_forbidden_favourite_gives_way_to_the_lowest_of_the_largest_allowed() -> None:
    mask = bitmask([1, 3, 4], 6)
    assert one([9.0, 1.0, 8.0, 2.0, 2.0, 7.0], row(mask=mask)) == 3


@pytest.mark.parametrize("width", [256, 257, 288, 320])
@pytest.mark.parametrize("temperature", [0.0, 5.0])
def test_padded_ids_are_never_drawn(width: int, temperature: float) -> None:
    logits = torch.zeros(1, width)
    logits[0, 250:] = 50.0
    params = SamplingParams(temperature=temperature)
    for vocab_size in (250, 256, 259):
        usable = min(vocab_size, width)
        for mask in (None, bitmask(list(range(width)), width)):
            rows = [row(params, position=i, mask=mask) for i in range(20)]
            drawn = sample(logits.repeat(20, 1), rows, vocab_size, frozenset())
            assert all(isinstance(d, int) and d < usable for d in drawn)


def test_ids_without_a_token_are_never_drawn() -> None:
    logits = torch.tensor([[0.0, 9.0, 1.0], [0.0, 9.0, 1.0]])
    rows = [row(), row(SamplingParams(temperature=1.0))]
    drawn = sample(logits, rows, 3, frozenset(), absent_ids=frozenset((1, 2)))
    assert [d for d in drawn if isinstance(d, int)] == [0, 0]


def test_forbidden_end_tokens_are_not_drawn() -> None:
    assert one([9.0, 1.0, 2.0], row(forbid_eos=True)) == 2


def test_a_mask_shorter_than_the_logits_forbids_the_rest() -> None:
    assert one([0.0] * 40 + [9.0], row(mask=bitmask([5], 32))) == 5


def test_nothing_left_after_the_mask_is_that_rows_error() -> None:
    assert fault([1.0, 2.0], row(mask=bitmask([], 2))).code == "grammar_dead_end"
    assert fault([-math.inf, 2.0], row(mask=bitmask([0], 2))).code == "grammar_dead_end"
    only_eos = fault([1.0, 2.0], row(mask=bitmask([0], 2), forbid_eos=True))
    assert only_eos.code == "grammar_dead_end"


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_only_the_poisoned_row_fails_and_names_its_step(bad: float, temperature: float) -> None:
    params = SamplingParams(temperature=temperature)
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(0))
    rows = [row(params, seed=i, position=3) for i in range(4)]
    whole = sample(logits, rows, 50, frozenset())
    logits[2, 11] = bad
    drawn = sample(logits, rows, 50, frozenset())
    assert [drawn[0], drawn[1], drawn[3]] == [whole[0], whole[1], whole[3]]
    error = drawn[2]
    assert isinstance(error, RequestError)
    assert error.code == "non_finite_logits"
    assert "step 3" in str(error)


def test_minus_infinity_is_fine_while_one_finite_value_remains() -> None:
    logits = [-math.inf, -math.inf, -1e30]
    assert one(logits, row()) == 2
    assert one(logits, row(SamplingParams(temperature=1e308))) == 2
    assert fault([-math.inf] * 3, row()).code == "non_finite_logits"


def test_logits_near_the_ends_of_float32_do_not_warn() -> None:
    logits = [3e38, -3e38, 1e9]
    assert one(logits, row(SamplingParams(temperature=0.001))) == 0


def test_frequencies_follow_the_softmax() -> None:
    found = frequencies([math.log(0.6), math.log(0.3), math.log(0.1)], SamplingParams())
    assert found == pytest.approx({0: 0.6, 1: 0.3, 2: 0.1}, abs=0.03)  # 4 standard errors


def test_temperature_sharpens() -> None:
    found = frequencies([math.log(0.6), math.log(0.3)], SamplingParams(temperature=0.5))
    assert found == pytest.approx({0: 0.8, 1: 0.2}, abs=0.03)


def test_top_k_keeps_k_and_breaks_ties_by_the_lowest_id() -> None:
    assert set(frequencies([1.0, 2.0, 1.0, 1.0], SamplingParams(top_k=2), 200)) == {0, 1}


@pytest.mark.parametrize("top_k", [0, -1, 4, 99])
def test_top_k_off_or_over_the_vocabulary_keeps_all(top_k: int) -> None:
    assert set(frequencies([0.0] * 4, SamplingParams(top_k=top_k), 200)) == {0, 1, 2, 3}


def test_top_p_keeps_the_smallest_set_that_reaches_it() -> None:
    logits = [math.log(p) for p in (0.1, 0.5, 0.3, 0.1)]
    assert set(frequencies(logits, SamplingParams(top_p=0.7), 300)) == {1, 2}
    assert set(frequencies(logits, SamplingParams(top_p=0.4), 300)) == {1}
    assert set(frequencies(logits, SamplingParams(top_p=1e-9), 300)) == {1}
    assert set(frequencies(logits, SamplingParams(top_p=0.85), 300)) == {0, 1, 2}


def test_top_p_counts_what_top_k_left() -> None:
    logits = [math.log(p) for p in (0.4, 0.3, 0.2, 0.1)]
    assert set(frequencies(logits, SamplingParams(top_k=2, top_p=0.56), 300)) == {0}


def test_min_p_is_relative_to_the_most_likely() -> None:
    logits = [math.log(p) for p in (0.5, 0.3, 0.2)]
    assert set(frequencies(logits, SamplingParams(min_p=0.5), 300)) == {0, 1}
    assert set(frequencies(logits, SamplingParams(min_p=1.0), 300)) == {0}


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.floats(0.05, 1.0), st.integers(0, 30))
def test_top_p_equals_the_sorted_definition(random: object, top_p: float, top_k: int) -> None:
    rng = np.random.default_rng(random.getrandbits(32))  # type: ignore[attr-defined]
    logits = rng.normal(0, 3, 200).astype(np.float32)
    order = np.argsort(-logits, kind="stable")[: top_k or None]
    weights = np.exp(logits[order].astype(np.float64) - logits.max())
    sums = np.cumsum(weights / weights.sum())
    nucleus = set(order[: int(np.searchsorted(sums, top_p)) + 1].tolist())
    params = SamplingParams(top_p=top_p, top_k=top_k)
    rows = [row(params, position=i) for i in range(50)]
    drawn = sample(torch.from_numpy(logits).repeat(50, 1), rows, 200, frozenset())
    assert {d for d in drawn if isinstance(d, int)} <= nucleus


@settings(derandomize=True, max_examples=30, deadline=None)
@given(st.permutations(range(8)), st.integers(1, 8))
def test_neither_the_order_nor_the_size_of_the_batch_matters(order: list[int], size: int) -> None:
    logits = torch.randn(8, 300, generator=torch.Generator().manual_seed(1))
    params = [SamplingParams(), SamplingParams(top_p=0.9), SamplingParams(top_k=5, min_p=0.1)]
    rows = [row(params[i % 3], seed=i, position=i * i) for i in range(8)]
    alone = [sample(logits[i : i + 1], [rows[i]], 300, frozenset())[0] for i in range(8)]
    chosen = order[:size]
    drawn = sample(logits[chosen], [rows[i] for i in chosen], 300, frozenset())
    assert drawn == [alone[i] for i in chosen]


def test_seed_and_position_decide_the_point_of() -> None:
    assert point_of(0, 0) == point_of(0, 0)
    assert len({point_of(seed, position) for seed in range(50) for position in range(50)}) == 2500
    assert point_of(-1, 3) != point_of(1, 3)
    assert 0 <= point_of(2**200, 10**9) < POINTS
    mean = sum(point_of(5, i) / POINTS for i in range(4000)) / 4000
    assert mean == pytest.approx(0.5, abs=0.02)  # 4 standard errors


def test_the_callers_logits_and_masks_stay_as_they_were() -> None:
    logits = torch.randn(3, 64, generator=torch.Generator().manual_seed(2))
    mask = bitmask([3, 60], 64)
    before, mask_before = logits.clone(), mask.copy()
    rows = [row(SamplingParams(top_p=0.5), mask=mask, forbid_eos=True, position=i) for i in (0, 1)]
    sample(logits, [*rows, row()], 60, frozenset((0,)), absent_ids=frozenset((5,)))
    assert torch.equal(logits, before)
    assert np.array_equal(mask, mask_before)


@pytest.mark.parametrize("num_allowed", [0, 1, 5, 60, 400, 500])
def test_greedy_rows_take_the_best_that_their_own_masks_allow(
    num_allowed: int,
) -> None:
    generator = torch.Generator().manual_seed(num_allowed)
    logits = torch.randint(9, (6, 500), generator=generator).float()  # many ties
    allowed = [
        torch.randperm(500, generator=generator)[:num_allowed].sort().values for _ in range(6)
    ]
    rows = [row(mask=bitmask(ids.tolist(), 500), forbid_eos=i > 2) for i, ids in enumerate(allowed)]
    rows[4] = row()  # of no grammar
    before, eos = logits.clone(), frozenset(range(0, 500, 2))
    drawn = sample(logits, rows, 490, eos, frozenset((3, 499)))
    for i in range(6):
        ids = allowed[i].tolist() if i != 4 else range(500)
        ids = [t for t in ids if t < 490 and t != 3 and not (rows[i].forbid_eos and t in eos)]
        best = max(ids, key=lambda t: float(before[i, t]), default=None)
        found = drawn[i]
        assert best == (None if isinstance(found, RequestError) else found)
    assert torch.equal(logits, before)


@pytest.mark.parametrize("num_rows", [0, 1, 63, 130])
def test_gathered_logprobs_equal_log_softmax(num_rows: int) -> None:
    logits = torch.randn(num_rows, 70, generator=torch.Generator().manual_seed(3)) * 5
    ids = [[i % 60, 3][: 1 + i % 2] for i in range(num_rows)]
    rows = torch.log_softmax(logits[:, :60].double(), 1)
    found = gather_logprobs(logits, ids, 60)
    for row, wanted, one in zip(rows, ids, found, strict=True):
        assert one == pytest.approx(row[wanted].tolist(), abs=1e-6)  # float32 exp


def test_gathering_refuses_non_finite_rows_and_ids_past_the_vocabulary() -> None:
    with pytest.raises(RequestError, match="non-finite"):
        gather_logprobs(torch.tensor([[0.0, math.nan]]), [[0]], 2)
    with pytest.raises(RequestError, match="not under 2"):
        gather_logprobs(torch.zeros(1, 3), [[2]], 2)
    assert gather_logprobs(torch.tensor([[0.0, -math.inf]]), [[1]], 2) == [[-math.inf]]
