"""The host's plan of a batch covers every row and key once, and finds what decodes share."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.attention.gpu_plan import (
    MAX_SPLITS,
    MIN_SHARED_SEQS,
    MIN_SHARED_TOKENS,
    PREFIX_SPLITS,
    Arrays,
    PlanShape,
    choose_splits,
    plan_arrays,
    shared_prefixes,
)


def shape(group: int = 3, window: int | None = None, rows: int = 16) -> PlanShape:
    return PlanShape(2 * group, 2, 16, rows, rows, window)


def planned(spans: list[tuple[int, int]], wanted: PlanShape, tables: np.ndarray) -> Arrays:
    news = [new for new, _ in spans]
    cu_seqlens = np.array([0, *itertools.accumulate(news)], np.int32)
    return plan_arrays(cu_seqlens, np.array([all for _, all in spans], np.int32), tables, wanted)


def own_tables(spans: list[tuple[int, int]]) -> np.ndarray:
    width = max(-(-context // 16) for _, context in spans)
    return np.arange(len(spans) * width, dtype=np.int32).reshape(len(spans), width)


SPANS = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 90)), min_size=1, max_size=6)


@settings(derandomize=True, deadline=None)
@given(SPANS, st.integers(1, 8), st.none() | st.integers(1, 40))
def test_every_row_has_one_tile_and_all_its_keys(
    pairs: list[tuple[int, int]], group: int, window: int | None
) -> None:
    spans = [(new, old + new) for new, old in pairs]
    arrays = planned(spans, shape(group, window), own_tables(spans))
    seen = {(int(i), 0): 1 for i in np.flatnonzero([new == 1 for new, _ in spans])}
    assert arrays["decode_ids"].tolist() == [i for i, _ in seen]
    for seq_id, token, position, row, end_row, begin, end, _, _ in arrays["tiles"].tolist():
        new, context = spans[seq_id]
        assert token == sum(other for other, _ in spans[:seq_id])
        assert position == context - new
        assert 0 < end_row - row <= 16
        for flat in range(row, end_row):
            key = position + flat // group  # the last key of this row
            assert begin <= (0 if window is None else max(0, key - window + 1))
            assert key < end <= context
            seen[seq_id, flat] = seen.get((seq_id, flat), 0) + 1
    wanted = {(i, f) for i, (new, _) in enumerate(spans) if new > 1 for f in range(new * group)}
    assert {at for at in seen if spans[at[0]][0] > 1} == wanted
    assert set(seen.values()) == {1}


def shared_tables(num_seqs: int, num_shared: int, width: int) -> np.ndarray:
    tables = np.arange(num_seqs * width, dtype=np.int32).reshape(num_seqs, width)
    tables[:, :num_shared] = np.arange(num_shared)
    return tables


def test_decodes_that_begin_alike_read_their_prefix_once() -> None:
    spans = [(1, 300 + i) for i in range(6)]
    arrays = planned(spans, shape(), shared_tables(6, 17, 20))
    assert arrays["begins"].tolist() == [17 * 16] * 6
    tiles = arrays["prefix_tiles"]
    rows = 6 * 3
    covered = np.zeros((rows, 17 * 16), np.int32)
    for _, token, _, row, end_row, begin, end, place, part in tiles.tolist():
        assert (token, place) == (0, 0)
        assert 0 <= part < PREFIX_SPLITS
        covered[row:end_row, begin:end] += 1
    assert (covered == 1).all()


def test_the_new_token_of_a_decode_is_never_in_the_prefix() -> None:
    tables, ids = shared_tables(4, 20, 20), np.arange(4, dtype=np.int32)
    lens = np.array([320, 320, 305, 320], np.int32)
    assert shared_prefixes(ids, lens, tables, 16) == [(0, 4, 304)]
    lens[2] = 304
    assert shared_prefixes(ids, lens, tables, 16) == [(0, 4, 288)]


def test_few_sequences_or_short_prefixes_are_left_alone() -> None:
    few = MIN_SHARED_SEQS - 1
    lens = np.full(8, 320, np.int32)
    ids = np.arange(8, dtype=np.int32)
    assert shared_prefixes(ids[:few], lens, shared_tables(8, 19, 20), 16) == []
    blocks = MIN_SHARED_TOKENS // 16
    assert shared_prefixes(ids, lens, shared_tables(8, blocks - 1, 20), 16) == []
    assert shared_prefixes(ids, lens, shared_tables(8, blocks, 20), 16) == [(0, 8, 16 * blocks)]


def test_two_families_are_two_groups_and_a_stranger_parts_them() -> None:
    tables = shared_tables(9, 19, 20)
    tables[4:] += 1000
    lens = np.full(9, 320, np.int32)
    ids = np.arange(9, dtype=np.int32)
    assert shared_prefixes(ids, lens, tables, 16) == [(0, 4, 304), (4, 9, 304)]
    assert shared_prefixes(np.delete(ids, 6), lens, tables, 16) == [(0, 4, 304)]


def test_a_window_shares_nothing() -> None:
    spans = [(1, 300)] * 6
    arrays = planned(spans, shape(window=100), shared_tables(6, 17, 20))
    assert not arrays["begins"].any()
    assert not len(arrays["prefix_tiles"])


@pytest.mark.parametrize(
    ("num_seqs", "longest", "wanted"),
    [
        (0, 5000, 1),
        (1, 100, 1),
        (1, 1024, 4),
        (1, 10**6, MAX_SPLITS),
        (64, 10**6, 1),
        (16, 10**6, 4),
    ],
)
def test_splits_fill_a_gpu_but_are_never_short(num_seqs: int, longest: int, wanted: int) -> None:
    assert choose_splits(num_seqs, PlanShape(8, 8, 16, 16, 16), longest) == wanted


def test_a_window_is_split_as_a_context_of_its_length() -> None:
    assert choose_splits(1, shape(window=600), 10**6) == choose_splits(1, shape(), 600) == 2
