"""Which rows of a batch read their context together.

Rows that share a prefix attend to it as one matrix product, at every level of the radix tree,
and go on alone where their paths part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .abi import CHUNK

Ints: TypeAlias = npt.NDArray[np.int32]

MAX_QUERIES = 24  # pairs of a row and a head that read the same keys and values together


class Reader(NamedTuple):  # one a sequence and step: a dataclass takes three times as long
    """One sequence of a batch: rows [begin, end), and the path of its context.

    `path` names the spans of the context that others may share, root first: (name, where the
    span ends in tokens). Equal beginnings of paths stand for the same slots.
    """

    begin: int
    end: int
    seq_len: int
    path: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows of each group, and the parts of its context in order.

    `parts` [n, 5]: the rows [first, end) of `rows` that read tokens [begin, end) of a sequence.
    """

    group_rows: Ints
    rows: Ints
    group_parts: Ints
    parts: Ints


def plan_groups(readers: Sequence[Reader], heads_per_kv_head: int) -> Groups:
    """Group the rows of a batch."""
    planner = _Planner(readers, max(1, MAX_QUERIES // heads_per_kv_head))
    short = [i for i, reader in enumerate(readers) if reader.end == reader.begin + 1]
    short.sort(key=lambda i: readers[i].path)
    for first in range(0, len(short), planner.max_rows):
        planner.add_decodes(short[first : first + planner.max_rows])
    for i, reader in enumerate(readers):
        if reader.end > reader.begin + 1:
            planner.add_chunk(i)
    return planner.groups()


class _Planner:
    def __init__(self, readers: Sequence[Reader], max_rows: int) -> None:
        self.max_rows = max_rows
        self._readers = readers
        self._rows: list[int] = []
        self._parts: list[tuple[int, int, int, int, int]] = []
        self._group_rows, self._group_parts = [0], [0]

    def groups(self) -> Groups:
        return Groups(
            np.array(self._group_rows, np.int32),
            np.array(self._rows, np.int32),
            np.array(self._group_parts, np.int32),
            np.array(self._parts, np.int32).reshape(-1, 5),
        )

    def add_decodes(self, seq_ids: list[int]) -> None:
        """Add rows of different sequences: one group for those that share something."""
        at = 0
        while at < len(seq_ids):
            end = self._end_of_group(seq_ids, at)
            if end == at + 1:
                reader = self._readers[seq_ids[at]]
                first = len(self._rows)
                self._parts.append((first, first + 1, seq_ids[at], 0, reader.seq_len))
            else:
                self._share(seq_ids[at:end], 0, 0)
            self._close([self._readers[i].begin for i in seq_ids[at:end]])
            at = end

    def _end_of_group(self, seq_ids: list[int], at: int) -> int:
        """Find where those end that begin with the same span as number `at`."""
        name, end = _name(self._readers[seq_ids[at]], 0), at + 1
        if name is not None:
            while end < len(seq_ids) and name == _name(self._readers[seq_ids[end]], 0):
                end += 1
        return end

    def add_chunk(self, seq_id: int) -> None:
        """Add the rows of one sequence, a few at a time."""
        reader = self._readers[seq_id]
        for begin in range(reader.begin, reader.end, self.max_rows):
            end = min(begin + self.max_rows, reader.end)
            first = len(self._rows)
            last_seen = reader.seq_len - (reader.end - end)
            self._parts.append((first, first + end - begin, seq_id, 0, last_seen))
            self._close(range(begin, end))

    def _close(self, rows: Iterable[int]) -> None:
        self._rows.extend(rows)
        self._group_rows.append(len(self._rows))
        self._group_parts.append(len(self._parts))

    def _share(self, seq_ids: list[int], begin: int, depth: int, first: int | None = None) -> None:
        """Add the parts of some sequences from token `begin` on; they share `depth` spans."""
        first = len(self._rows) if first is None else first
        if len(seq_ids) == 1:
            reader = self._readers[seq_ids[0]]
            self._parts.append((first, first + 1, seq_ids[0], begin, reader.seq_len))
            return
        shared = begin
        readers = [self._readers[i] for i in seq_ids]
        while (name := _name(readers[0], depth)) is not None and all(
            _name(r, depth) == name for r in readers[1:]
        ):
            shared = readers[0].path[depth][1]
            depth += 1
        # Chunks begin at multiples of their size, whoever shares them.
        shared = min(shared, min(r.seq_len for r in readers) - 1) // CHUNK * CHUNK
        if shared > begin:
            self._parts.append((first, first + len(seq_ids), seq_ids[0], begin, shared))
            begin = shared
        at = 0
        while at < len(seq_ids):
            name, end = _name(readers[at], depth), at + 1
            while end < len(seq_ids) and name is not None and _name(readers[end], depth) == name:
                end += 1
            self._share(seq_ids[at:end], begin, depth, first + at)
            at = end


def _name(reader: Reader, depth: int) -> int | None:
    return reader.path[depth][0] if depth < len(reader.path) else None
