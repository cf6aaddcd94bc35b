"""Lay the chunks of a step end to end, as arrays for the runner."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from .cache.node import Node
from .plan import Chunk, Plan
from .sequence import Batch, Int32, Path, Sequence


def to_batch(plan: Plan, block_size: int) -> Batch:
    """Give the arrays of one forward pass."""
    chunks = plan.chunks
    lengths = [c.num_rows for c in chunks]
    starts = [0, *accumulate(lengths)]
    owners = np.arange(len(chunks))
    positions: Int32 = np.array([c.start for c in chunks], np.int32)
    if starts[-1] > len(chunks):  # not all of them are decodes
        owners = np.repeat(owners, lengths)  # [T] number of each token's chunk
        shifts: Int32 = positions - np.array(starts[:-1], np.int32)
        positions = np.arange(starts[-1], dtype=np.int32) + shifts[owners]
    tables = _tables(chunks)
    table_ids = positions // block_size
    blocks = tables[owners, table_ids].astype(np.int64)
    return Batch(
        token_ids=np.concatenate([part for c in chunks for part in _tokens(c)]),
        positions=positions,
        slot_mapping=blocks * block_size + positions % block_size,
        cu_seqlens=np.array(starts, np.int32),
        seq_lens=np.array([c.start + c.num_rows for c in chunks], np.int32),
        block_tables=tables,
        copy_from=np.array(list(plan.copies.values()), np.int64),
        copy_to=np.array(list(plan.copies), np.int64),
        logit_rows=np.array(
            [at + row for c, at in zip(chunks, starts, strict=False) for row in wanted(c)], np.int64
        ),
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
    nodes: list[Node] = []
    node = sequence.node
    while node is not None and node.parent is not None:
        nodes.append(node)
        node = node.parent
    nodes.reverse()
    ends = accumulate(len(node.tokens) for node in nodes)
    return tuple((id(node), end) for node, end in zip(nodes, ends, strict=True))


def _tables(chunks: list[Chunk]) -> Int32:
    views = [c.sequence.block_table.view for c in chunks]
    tables = np.zeros((len(chunks), max(map(len, views))), np.int32)
    for row, view in zip(tables, views, strict=True):
        row[: len(view)] = view
    return tables
