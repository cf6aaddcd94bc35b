"""Bits of tokens in a mask."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from .spec import Bitmask

FEW = 12  # tokens that are set one by one
_BITS = np.left_shift(np.int32(1), np.arange(32, dtype=np.int32))


def set_bits(row: Bitmask, ids: Collection[int]) -> None:
    """Set the bits of some tokens."""
    if len(ids) <= FEW:
        for i in ids:
            row[i >> 5] |= _BITS[i & 31]
    else:
        places = np.fromiter(ids, np.int64, len(ids))
        bits = np.left_shift(np.int32(1), (places & 31).astype(np.int32))
        np.bitwise_or.at(row, places >> 5, bits)


def bits_of(ids: Collection[int], mask_len: int) -> Bitmask:
    """Give the mask of some tokens."""
    row = np.zeros(mask_len, np.int32)
    set_bits(row, ids)
    return row


def ids_of(row: Bitmask) -> list[int]:
    """Give the tokens whose bits are set."""
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
