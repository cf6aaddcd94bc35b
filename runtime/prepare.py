"""Lay the chunks of a step end to end, as arrays for the runner."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from .cache.node import Node
from .plan import Chunk, Plan
from .sequence import Batch, Int32, Int64, Path, Sequence


def to_batch(plan: Plan, block_size: int) -> Batch:
    """Give the arrays of one forward pass."""
    chunks = plan.chunks
    starts = [0, *accumulate(c.num_rows for c in chunks)]
    tables = _tables(chunks)
    are_decodes = starts[-1] == len(chunks)
    token_ids, positions, slots = (
        _of_decodes(chunks, block_size)
        if are_decodes
        else _of_spans(chunks, starts, tables, block_size)
    )
    return Batch(
        token_ids=token_ids,
        positions=positions,
        slot_mapping=slots,
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


def _of_decodes(chunks: list[Chunk], block_size: int) -> tuple[Int32, Int32, Int64]:
    """Give tokens, positions and slots of chunks of one token each."""
    # One by one: few numbers, and each function of numpy is cold after the pass before.
    token_ids = [c.sequence.tokens[c.start] for c in chunks]
    positions = [c.start for c in chunks]
    slots = [
        c.sequence.block_table[c.start // block_size] * block_size + c.start % block_size
        for c in chunks
    ]
    return np.array(token_ids, np.int32), np.array(positions, np.int32), np.array(slots, np.int64)


def _of_spans(
    chunks: list[Chunk], starts: list[int], tables: Int32, block_size: int
) -> tuple[Int32, Int32, Int64]:
    """Give tokens, positions and slots of chunks of any length, which begin at `starts`."""
    owners = np.repeat(np.arange(len(chunks)), np.diff(starts))  # [T] number of each token's chunk
    shifts = np.array([c.start - at for c, at in zip(chunks, starts, strict=False)], np.int32)
    positions: Int32 = np.arange(starts[-1], dtype=np.int32) + shifts[owners]
    blocks = tables[owners, positions // block_size].astype(np.int64)
    tokens = np.concatenate([part for c in chunks for part in _tokens(c)])
    return tokens, positions, blocks * block_size + positions % block_size


def wanted(chunk: Chunk) -> range:
    """Give the rows of `chunk` whose logits are wanted, counted from its start."""
    first = chunk.sequence.num_reusable - chunk.start  # rows before it are not asked for
    return range(first if first > 0 else 0, chunk.num_rows)


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
    end, path = 0, []
    for node in reversed(nodes):
        end += len(node.tokens)
        path.append((id(node), end))
    return tuple(path)


def _tables(chunks: list[Chunk]) -> Int32:
    views = [c.sequence.block_table.view for c in chunks]
    tables = np.zeros((len(chunks), max(map(len, views))), np.int32)
    for row, view in zip(tables, views, strict=True):
        row[: len(view)] = view
    return tables
