"""What attention needs to know of a batch, found once and used by every layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Padding costs arithmetic and gathered bytes, one more group costs four operations a layer.
MAX_SHORT_QUERY = 32  # sequences with up to so many new tokens are worth grouping
MAX_GROUP_SLOTS = 8192  # so that the gathered K of a group stays near the L2 cache
MAX_WASTE = 1.25  # longest context of a group over its shortest, past a few tokens
FREE_WASTE = 32


@dataclass(frozen=True, slots=True)
class AttentionGroup:
    """`num_seqs` sequences computed together, padded to equal query and context lengths.

    Padding repeats a row or slot of the same sequence, never another's: what stands in
    unused slots, NaN included, is never read.
    """

    num_seqs: int
    query_len: int
    context_len: int
    rows: Tensor | None  # [num_seqs * query_len] rows of q; None: all of them, in order
    slots: Tensor  # [num_seqs * context_len]
    mask: Tensor | None  # [num_seqs, 1, query_len, context_len], added to the scores
    is_causal: bool  # True: the mask is the lower triangle


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """How one batch is computed."""

    groups: tuple[AttentionGroup, ...]
    order: Tensor | None  # [T] place of each row in the groups' padded outputs; None: the same


@dataclass(frozen=True, slots=True)
class _Span:
    """The new tokens of one sequence: rows `begin` and on, which see keys `first` and on."""

    seq_id: int
    begin: int
    query_len: int
    seq_len: int
    first: int

    @property
    def num_keys(self) -> int:
        return self.seq_len - self.first

    @property
    def is_short(self) -> bool:
        return self.query_len <= MAX_SHORT_QUERY


def plan_attention(
    cu_seqlens: Tensor,  # [n + 1], on the CPU
    seq_lens: Tensor,  # [n], on the CPU
    block_tables: Tensor,  # [n, max blocks], on the CPU
    *,
    block_size: int,
    dtype: torch.dtype,
    device: torch.device,
    window: int | None = None,
) -> AttentionPlan:
    """Group the sequences of a batch, and give the indices and masks of each group.

    `dtype` is that of the queries. With a `window` a token sees that many, itself included.
    """
    bounds, lengths = cu_seqlens.tolist(), seq_lens.tolist()
    spans = [
        _span(i, bounds[i], bounds[i + 1], lengths[i], window)
        for i in range(len(lengths))
        if bounds[i + 1] > bounds[i]
    ]
    buckets = _bucket(spans)
    placed = [_rows(bucket) for bucket in buckets]
    identity = list(range(bounds[-1]))
    groups = []
    for bucket, rows in zip(buckets, placed, strict=True):
        slots, mask, is_causal = _context(bucket, block_tables, block_size, window)
        groups.append(
            AttentionGroup(
                num_seqs=len(bucket),
                query_len=max(span.query_len for span in bucket),
                context_len=slots.shape[1],
                rows=None if rows == identity else torch.tensor(rows, device=device),
                slots=slots.reshape(-1).to(device),
                mask=None if mask is None else mask.to(device, dtype),
                is_causal=is_causal,
            )
        )
    order = _order(placed, len(identity))
    is_same = order == identity and sum(map(len, placed)) == len(identity)
    return AttentionPlan(tuple(groups), None if is_same else torch.tensor(order, device=device))


def _span(seq_id: int, begin: int, end: int, seq_len: int, window: int | None) -> _Span:
    first = 0 if window is None else max(0, seq_len - (end - begin) + 1 - window)
    return _Span(seq_id, begin, end - begin, seq_len, first)


def _bucket(spans: list[_Span]) -> list[list[_Span]]:
    """Put short spans of like length together; a long one stays alone."""
    buckets: list[list[_Span]] = []
    # Decodes come before short extensions: their queries need no padding.
    for span in sorted((s for s in spans if s.is_short), key=_likeness):
        if buckets and _fits(buckets[-1], span):
            buckets[-1].append(span)
        else:
            buckets.append([span])
    for bucket in buckets:
        bucket.sort(key=lambda span: span.begin)
    return buckets + [[span] for span in spans if not span.is_short]


def _likeness(span: _Span) -> tuple[bool, int, int]:
    return (span.query_len > 1, span.num_keys, span.begin)


def _fits(bucket: list[_Span], span: _Span) -> bool:
    """Say whether `span`, no shorter than any in the bucket, may join it."""
    shortest = bucket[0].num_keys
    return (
        (bucket[0].query_len > 1) == (span.query_len > 1)
        and (len(bucket) + 1) * span.num_keys <= MAX_GROUP_SLOTS
        and span.num_keys <= shortest * MAX_WASTE + FREE_WASTE
    )


def _rows(bucket: list[_Span]) -> list[int]:
    """Give the rows of q of a bucket; padding repeats the last row of the sequence."""
    query_len = max(span.query_len for span in bucket)
    return [span.begin + min(i, span.query_len - 1) for span in bucket for i in range(query_len)]


def _order(placed: list[list[int]], num_rows: int) -> list[int]:
    """Find where each row is computed; any of its repetitions will do, the first is taken."""
    order = [0] * num_rows
    flat = [row for rows in placed for row in rows]
    for place in range(len(flat) - 1, -1, -1):
        order[flat[place]] = place
    return order


def _context(
    bucket: list[_Span], block_tables: Tensor, block_size: int, window: int | None
) -> tuple[Tensor, Tensor | None, bool]:
    """Give the slots [num_seqs, context_len] of a bucket, its mask, and if that is causal."""
    firsts = torch.tensor([span.first for span in bucket])[:, None]
    lengths = torch.tensor([span.num_keys for span in bucket])[:, None]
    positions = torch.arange(int(lengths.max()))[None]  # counted from the first key
    tables = block_tables[[span.seq_id for span in bucket]].long()
    kept = firsts + torch.where(positions < lengths, positions, 0)
    slots = tables.gather(1, kept // block_size) * block_size + kept % block_size
    query_len = max(span.query_len for span in bucket)
    is_windowed = window is not None and int(lengths.max()) > window
    if len(bucket) == 1 and query_len == bucket[0].seq_len and not is_windowed:
        return slots, None, query_len > 1
    if query_len == 1 and bool((lengths == positions.shape[1]).all()):
        return slots, None, False
    steps = torch.arange(query_len)[None]
    begins = torch.tensor([span.num_keys - span.query_len for span in bucket])[:, None]
    last_seen = torch.minimum(begins + steps, lengths - 1)  # [num_seqs, query_len]
    mask = torch.zeros(len(bucket), 1, query_len, positions.shape[1])
    mask.masked_fill_(positions[None, None] > last_seen[:, None, :, None], float("-inf"))
    if window is not None:
        hidden = positions[None, None] <= (last_seen - window)[:, None, :, None]
        mask.masked_fill_(hidden, float("-inf"))
    return slots, mask, False
