"""Lay the chunks of a step end to end, as arrays for the runner."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from .plan import Chunk, Plan
from .sequence import Batch, Int32, Int64, Path, Sequence


def to_batch(plan: Plan, block_size: int) -> Batch:
    """Give the arrays of one forward pass."""
    chunks = plan.chunks
    lengths = [c.num_rows for c in chunks]
    positions = [np.arange(c.start, c.start + c.num_rows, dtype=np.int32) for c in chunks]
    starts: Int32 = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    slots = [_slots(c, p, block_size) for c, p in zip(chunks, positions, strict=True)]
    rows = [int(start) + row for c, start in zip(chunks, starts, strict=False) for row in wanted(c)]
    return Batch(
        token_ids=np.concatenate([part for c in chunks for part in _tokens(c)]),
        positions=np.concatenate(positions),
        slot_mapping=np.concatenate(slots),
        cu_seqlens=starts,
        seq_lens=np.array([c.start + c.num_rows for c in chunks], np.int32),
        block_tables=_tables(chunks),
        copy_from=np.array(list(plan.copies.values()), np.int64),
        copy_to=np.array(list(plan.copies), np.int64),
        logit_rows=np.array(rows, np.int64),
        sequences=tuple(c.sequence for c in chunks),
        paths=tuple(_path(c.sequence) for c in chunks),
    )


def wanted(chunk: Chunk) -> range:
    """Give the rows of `chunk` whose logits are wanted, counted from its start."""
    sequence = chunk.sequence
    first = sequence.num_reusable  # rows before it are not asked for
    return range(max(0, first - chunk.start), chunk.num_rows)


def _tokens(chunk: Chunk) -> list[Int32]:
    tokens: Int32 = chunk.sequence.tokens.view[chunk.start : chunk.end]
    return [tokens, np.array(chunk.draft, np.int32)] if chunk.draft else [tokens]


def _path(sequence: Sequence) -> Path:
    """Give the nodes of the radix tree that hold a sequence's context."""
    spans: list[tuple[int, int]] = []
    node = sequence.node
    while node is not None and node.parent is not None:
        spans.append((id(node), len(node.tokens)))
        node = node.parent
    names, lengths = [name for name, _ in spans[::-1]], [length for _, length in spans[::-1]]
    return tuple(zip(names, accumulate(lengths), strict=True))


def _slots(chunk: Chunk, positions: Int32, block_size: int) -> Int64:
    blocks = chunk.sequence.block_table.view[positions // block_size].astype(np.int64)
    slots: Int64 = blocks * block_size + positions % block_size
    return slots


def _tables(chunks: list[Chunk]) -> Int32:
    tables = np.zeros((len(chunks), max(len(c.sequence.block_table) for c in chunks)), np.int32)
    for row, chunk in zip(tables, chunks, strict=True):
        row[: len(chunk.sequence.block_table)] = chunk.sequence.block_table.view
    return tables
