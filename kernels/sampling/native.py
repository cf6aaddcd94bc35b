"""Draws and log-probabilities by the compiled kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise

import numpy as np

from ..native import Library, abi
from .rows import DrawRow, Floats, Words


def draw(library: Library, logits: Floats, rows: Sequence[DrawRow]) -> list[int]:
    """Give what `reference.draw` gives."""
    logits = _side_by_side(logits)
    drawn = (ctypes.c_int64 * len(rows))()
    made = {id(row): _struct(row) for row in rows}  # those that are drawn alike are often one
    structs = (abi.DrawRow * len(rows))(*(made[id(row)] for row in rows))
    library.functions.plait_sample(*_places(logits), structs, len(rows), drawn)
    return list(drawn)


def logprobs(
    library: Library, logits: Floats, token_ids: Sequence[Sequence[int]]
) -> list[list[float]]:
    """Give what `reference.logprobs` gives, to 1e-6."""
    logits, num_rows = _side_by_side(logits), len(token_ids)
    starts = [0, *accumulate(map(len, token_ids))]
    ids = (ctypes.c_int64 * starts[-1])(*chain.from_iterable(token_ids))
    found = (ctypes.c_double * starts[-1])()
    places = (ctypes.c_int64 * (num_rows + 1))(*starts)
    library.functions.plait_logprobs(*_places(logits), places, ids, num_rows, found)
    return [found[start:end] for start, end in pairwise(starts)]


def _side_by_side(logits: Floats) -> Floats:
    """Give the rows with each one's numbers side by side; a copy only where they are not."""
    return logits if logits.strides[1] == logits.itemsize else np.ascontiguousarray(logits)


def _places(logits: Floats) -> tuple[int, int, int]:
    """Give address, stride and width."""
    assert logits.dtype == np.float32
    return logits.ctypes.data, logits.strides[0] // logits.itemsize, logits.shape[1]


def _struct(row: DrawRow) -> abi.DrawRow:
    mask = row.mask
    return abi.DrawRow(
        _address(row.known),
        None if mask is None else _address(mask),
        row.point,
        row.top_p,
        row.min_p,
        row.temperature,
        0 if mask is None else len(mask),
        row.top_k,
        0,
    )


def _address(words: Words) -> int:
    assert words.itemsize == words.strides[0] == 4
    return words.ctypes.data
