"""Decodes are padded to a bucket by rows that disturb nobody."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plait.kernels.attention import PlanShape
from plait.kernels.attention.gpu_plan import MIN_SHARED_SEQS, TILE_WIDTH, plan_arrays
from plait.runtime.model.cuda_batch import (
    BUCKETS,
    Bucket,
    batch_arrays,
    bucket_size,
    empty_arrays,
    pad_arrays,
    prefix_capacity,
)
from plait.runtime.sequence import Batch

SHAPE = PlanShape(num_heads=6, num_kv_heads=2, block_size=16, extend_rows=16, prefix_rows=16)
SCRATCH = 4000


def decodes(num_seqs: int, news: list[int] | None = None, num_copies: int = 0) -> Batch:
    news = news or [1] * num_seqs
    num_tokens = sum(news)
    return Batch(
        token_ids=np.arange(1, num_tokens + 1, dtype=np.int32),
        positions=np.arange(20, 20 + num_tokens, dtype=np.int32),
        slot_mapping=np.arange(100, 100 + num_tokens, dtype=np.int64),
        cu_seqlens=np.array([0, *np.cumsum(news)], np.int32),
        seq_lens=np.arange(21, 21 + num_seqs, dtype=np.int32),
        block_tables=np.arange(1, 1 + num_seqs * 6, dtype=np.int32).reshape(num_seqs, 6),
        copy_from=np.arange(num_copies, dtype=np.int64),
        copy_to=np.arange(num_copies, dtype=np.int64) + 500,
        logit_rows=np.arange(num_tokens, dtype=np.int64),
    )


@pytest.mark.parametrize(
    ("num_seqs", "size"), [(1, 1), (2, 2), (3, 4), (5, 8), (17, 32), (63, 64), (64, 64), (65, None)]
)
def test_decodes_go_into_the_next_bucket(num_seqs: int, size: int | None) -> None:
    assert bucket_size(decodes(num_seqs)) == size


def test_other_batches_have_no_bucket() -> None:
    assert bucket_size(decodes(2, [1, 2])) is None
    assert bucket_size(decodes(2, [2, 0])) is None
    assert bucket_size(decodes(2, num_copies=1)) is None


def test_padded_rows_write_to_the_scratch_slot_and_read_nothing() -> None:
    arrays = batch_arrays(decodes(5), SHAPE)
    padded = pad_arrays(arrays, Bucket(8, 10, 0), SCRATCH)
    assert padded["slot_mapping"].tolist() == [100, 101, 102, 103, 104] + [SCRATCH] * 3
    assert padded["seq_lens"].tolist() == [21, 22, 23, 24, 25, 0, 0, 0]
    assert padded["token_ids"].tolist() == [1, 2, 3, 4, 5, 0, 0, 0]
    assert padded["cu_seqlens"].tolist() == list(range(9))
    assert padded["decode_ids"].tolist() == list(range(8))
    assert padded["block_tables"].shape == (8, 10)
    assert (padded["block_tables"][:5, :6] == arrays["block_tables"]).all()
    assert not padded["block_tables"][5:].any()
    assert not padded["begins"].any()


def test_padding_has_the_same_shapes_whatever_is_in_it() -> None:
    bucket = Bucket(8, 10, 0)
    empty = empty_arrays(bucket, SCRATCH)
    for num_seqs in (1, 5, 8):
        padded = pad_arrays(batch_arrays(decodes(num_seqs), SHAPE), bucket, SCRATCH)
        assert {name: array.shape for name, array in padded.items()} == {
            name: array.shape for name, array in empty.items()
        }
        assert list(padded) == list(empty)  # the order is that of the addresses


def test_no_room_is_kept_for_prefixes_that_nobody_shares() -> None:
    assert prefix_capacity(MIN_SHARED_SEQS - 1, SHAPE) == 0
    assert prefix_capacity(64, replace(SHAPE, window=100)) == 0


@pytest.mark.parametrize("num_seqs", BUCKETS)
def test_the_prefix_tiles_of_any_grouping_fit(num_seqs: int) -> None:
    for family in (4, 5, 7, 64):
        tables = np.arange(num_seqs * 20, dtype=np.int32).reshape(num_seqs, 20)
        tables[:, :19] = np.arange(19) + 1000 * (np.arange(num_seqs) // family)[:, None]
        bounds = np.arange(num_seqs + 1, dtype=np.int32)
        arrays = plan_arrays(bounds, np.full(num_seqs, 320, np.int32), tables, SHAPE)
        tiles = arrays["prefix_tiles"]
        assert len(tiles) <= prefix_capacity(num_seqs, SHAPE)
        assert tiles.shape[1] == TILE_WIDTH
