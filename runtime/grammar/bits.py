"""Bits of tokens in a mask."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from .spec import Bitmask

FEW = 12  # tokens that are set one by one
_BITS = np.left_shift(np.int32(1), np.arange(32, dtype=np.int32))


def mask_len(width: int) -> int:
    """Give the number of 32-bit words in a mask over `width` ids."""
    return -(-width // 32)


def pack_ids(ids: npt.NDArray[np.integer], width: int) -> Bitmask:
    """Give the mask over `width` ids of some tokens; for many of them."""
    bits = np.zeros(mask_len(width) * 32, np.bool_)
    bits[ids] = True
    return np.packbits(bits, bitorder="little").view("<i4").astype(np.int32, copy=False)


def set_bits(row: Bitmask, ids: Collection[int]) -> None:
    """Set the bits of some tokens."""
    if len(ids) <= FEW:
        for i in ids:
            row[i >> 5] |= _BITS[i & 31]
    else:
        places = np.fromiter(ids, np.int64, len(ids))
        bits = np.left_shift(np.int32(1), (places & 31).astype(np.int32))
        np.bitwise_or.at(row, places >> 5, bits)


def bits_of(ids: Collection[int], num_words: int) -> Bitmask:
    """Give the mask of some tokens."""
    row = np.zeros(num_words, np.int32)
    set_bits(row, ids)
    return row


def ids_of(row: Bitmask) -> list[int]:
    """Give the tokens whose bits are set."""
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
