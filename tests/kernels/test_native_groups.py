"""Groups of rows: each row reads its context once and in order, shared parts together."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.native import Groups, Reader, plan_groups
from plait.kernels.native.abi import CHUNK


def parts_of(groups: Groups) -> list[tuple[list[int], int, int, int]]:
    """Give (rows, sequence, begin, end) of each part."""
    rows = groups.rows.tolist()
    return [(rows[first:last], seq, a, b) for first, last, seq, a, b in groups.parts.tolist()]


@st.composite
def batches(draw: st.DrawFn) -> list[Reader]:
    """Sequences whose paths branch off from each other, some with several new tokens."""
    readers: list[Reader] = []
    row = 0
    for _ in range(draw(st.integers(1, 12))):
        path: list[tuple[int, int]] = []
        end = 0
        for depth in range(draw(st.integers(0, 3))):
            # The name fixes where a span ends, as a node of a tree does.
            choice = draw(st.integers(0, 2))
            end += 16 * (1 + 5 * choice + depth)
            path.append((hash((tuple(path), choice)), end))
        num_rows = draw(st.sampled_from([1, 1, 1, 2, 9]))
        seq_len = end + num_rows + draw(st.integers(0, 200))
        readers.append(Reader(row, row + num_rows, seq_len, tuple(path)))
        row += num_rows
    return readers


@settings(max_examples=200, deadline=None)
@given(batches(), st.integers(1, 9))
def test_each_row_reads_its_own_context_once_and_in_order(
    readers: list[Reader], heads: int
) -> None:
    parts = parts_of(plan_groups(readers, heads))
    at = [0] * readers[-1].end
    owner = [reader for reader in readers for _ in range(reader.begin, reader.end)]
    for rows, seq, begin, end in parts:
        for row in rows:
            assert at[row] == begin
            at[row] = end
            assert begin % CHUNK == 0
            mine, read = owner[row], readers[seq]
            if mine is not read:  # then both have it: they share a node that goes so far
                common = [a[1] for a, b in zip(mine.path, read.path, strict=False) if a == b]
                assert end <= max(common)
    for reader in readers:
        for row in range(reader.begin, reader.end):
            assert at[row] >= reader.seq_len - (reader.end - 1 - row)


def test_rows_that_share_a_prefix_read_it_together() -> None:
    shared = ((1, 1024),)
    readers = [Reader(i, i + 1, 1100 + i, shared) for i in range(4)]
    parts = parts_of(plan_groups(readers, 3))
    assert parts[0] == ([0, 1, 2, 3], 0, 0, 1024)
    assert [(rows, begin) for rows, _, begin, _ in parts[1:]] == [([i], 1024) for i in range(4)]


def test_sharing_goes_down_the_tree() -> None:
    trunk, left, right = (1, CHUNK), (2, 3 * CHUNK), (3, 2 * CHUNK)
    paths = [(trunk, left), (trunk, right), (trunk, left), (trunk, right)]
    readers = [Reader(i, i + 1, 4 * CHUNK, path) for i, path in enumerate(paths)]
    parts = parts_of(plan_groups(readers, 3))
    assert (sorted(parts[0][0]), *parts[0][2:]) == ([0, 1, 2, 3], 0, CHUNK)
    assert next(part for part in parts if part[2:] == (CHUNK, 3 * CHUNK))[0] == [0, 2]
    assert next(part for part in parts if part[2:] == (CHUNK, 2 * CHUNK))[0] == [1, 3]


def test_a_shared_part_ends_with_a_whole_chunk() -> None:
    shared = ((1, CHUNK + CHUNK // 2),)
    readers = [Reader(i, i + 1, 3 * CHUNK, shared) for i in range(2)]
    assert [part[2:] for part in parts_of(plan_groups(readers, 3))] == [
        (0, CHUNK),
        (CHUNK, 3 * CHUNK),
        (CHUNK, 3 * CHUNK),
    ]
