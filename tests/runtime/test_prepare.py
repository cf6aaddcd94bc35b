"""The batch of a step: what is laid end to end, and what is known to be shared."""

from __future__ import annotations

import numpy as np

from plait.runtime.cache.node import Node
from plait.runtime.plan import Chunk, Plan
from plait.runtime.prepare import to_batch
from plait.runtime.sequence import Ints, Sequence

BLOCK_SIZE = 16


def node(num_tokens: int, parent: Node | None) -> Node:
    return Node(
        np.zeros(num_tokens, np.int32), np.zeros(-(-num_tokens // BLOCK_SIZE), np.int32), parent
    )


def sequence(num_tokens: int, at: Node | None) -> Sequence:
    made = Sequence(f"s{num_tokens}", "", Ints(np.zeros(num_tokens, np.int32)), num_tokens)
    made.block_table.extend(list(range(-(-num_tokens // BLOCK_SIZE))))
    made.node = at
    return made


def test_paths_name_the_spans_that_sequences_share() -> None:
    root = node(0, None)
    trunk = node(32, root)
    left, right = node(16, trunk), node(48, trunk)
    sequences = [sequence(50, left), sequence(90, right), sequence(33, trunk), sequence(5, None)]
    plan = Plan(0, [Chunk(s, len(s.tokens) - 1, len(s.tokens)) for s in sequences])
    paths = to_batch(plan, BLOCK_SIZE).paths
    assert [[end for _, end in path] for path in paths] == [[32, 48], [32, 80], [32], []]
    assert paths[0][0] == paths[1][0] == paths[2][0]
    assert paths[0][1] != paths[1][1]


def test_tokens_are_laid_end_to_end() -> None:
    first, second = sequence(20, None), sequence(40, None)
    batch = to_batch(Plan(0, [Chunk(first, 10, 20), Chunk(second, 39, 40)]), BLOCK_SIZE)
    assert batch.cu_seqlens.tolist() == [0, 10, 11]
    assert batch.positions.tolist() == [*range(10, 20), 39]
    assert batch.slot_mapping.tolist() == [*range(10, 20), 39]
    assert batch.seq_lens.tolist() == [20, 40]
    assert batch.logit_rows.tolist() == [9, 10]


def test_decodes_alone_are_laid_out_as_in_company() -> None:
    decodes = [Chunk(s, n - 1, n) for n in (1, 15, 16, 17, 90) for s in [counting(n)]]
    alone = to_batch(Plan(0, decodes), BLOCK_SIZE)
    company = to_batch(Plan(0, [*decodes, Chunk(counting(40), 30, 40)]), BLOCK_SIZE)
    for name in ("token_ids", "positions", "slot_mapping", "logit_rows", "seq_lens"):
        found, wanted = getattr(alone, name), getattr(company, name)[: len(decodes)]
        assert (found.dtype, found.tolist()) == (wanted.dtype, wanted.tolist()), name


def counting(num_tokens: int) -> Sequence:
    """Give a sequence of tokens 100, 101... in blocks from the end of the pool."""
    made = sequence(num_tokens, None)
    made.tokens.view[:] = np.arange(100, 100 + num_tokens)
    made.block_table.view[:] = 99 - made.block_table.view
    return made
