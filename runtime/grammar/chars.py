"""Sets of code points, with the meaning that Python's `re` gives to classes and flags."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

import numpy as np

from .expr import Ranges

LAST = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)  # code points without a UTF-8 form
CASED_UNDER = 0x1F000  # no letter with case lies past this

_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sort ranges and merge those that touch."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """Give all the other code points."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if start < low:
            gaps.append((start, low - 1))
        start = high + 1
    return tuple([*gaps, (start, LAST)] if start <= LAST else gaps)


def difference(ranges: Ranges, removed: Ranges) -> Ranges:
    """Give the code points of `ranges` that are not in `removed`."""
    return complement(union((*complement(ranges), *removed)))


def encodable(ranges: Ranges) -> Ranges:
    """Leave out the surrogates."""
    return difference(ranges, (SURROGATES,))


def is_encodable(code: int) -> bool:
    """Say whether a code point has a UTF-8 form."""
    return not SURROGATES[0] <= code <= SURROGATES[1]


def spellable(known_bytes: Iterable[int]) -> Ranges:
    """Give the characters whose bytes in UTF-8 are all among `known_bytes`."""
    return _spellable(frozenset(known_bytes))


@functools.lru_cache(maxsize=16)
def _spellable(known_bytes: frozenset[int]) -> Ranges:
    """Look at each character: about 30 ms, so the answer is kept."""
    is_known = np.zeros(256, np.bool_)
    is_known[list(known_bytes)] = True
    codes = np.arange(LAST + 1)
    tail = is_known[0x80 | codes & 0x3F]
    middle = is_known[0x80 | codes >> 6 & 0x3F] & tail
    can_spell = np.select(
        [codes < 0x80, codes < 0x800, codes < 0x10000],
        [
            is_known[codes & 0x7F],
            is_known[0xC0 | codes >> 6 & 0x1F] & tail,
            is_known[0xE0 | codes >> 12 & 0x0F] & middle,
        ],
        is_known[0xF0 | codes >> 18 & 0x07] & is_known[0x80 | codes >> 12 & 0x3F] & middle,
    )
    can_spell[SURROGATES[0] : SURROGATES[1] + 1] = False
    borders = np.flatnonzero(np.diff(can_spell, prepend=False, append=False)).tolist()
    return tuple((low, high - 1) for low, high in zip(borders[::2], borders[1::2], strict=True))


@functools.lru_cache(maxsize=16)
def category(name: str, flags: int) -> Ranges:
    r"""Give the code points of `\d`, `\s`, `\w` (DIGIT, SPACE, WORD) under re.ASCII or not.

    Asked of `re` itself, over all characters: about 20 ms, so the answer is kept.
    """
    everything = np.arange(LAST + 1, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    runs = re.finditer(_CATEGORIES[name] + "+", everything, flags)
    return tuple((run.start(), run.end() - 1) for run in runs)


@functools.lru_cache(maxsize=1)
def cased() -> str:
    """Give all characters to which case can matter."""
    return "".join(c for c in map(chr, range(CASED_UNDER)) if c.lower() != c or c.upper() != c)


@functools.lru_cache(maxsize=4096)
def ignoring_case(source: str, sensitive: Ranges, flags: int) -> Ranges:
    """Give what the class `source` (such as "[a-f]") matches under re.IGNORECASE.

    `sensitive` is what it matches without. The letters with case are asked of `re`.
    """
    letters = cased()
    matched = {c for c in re.findall(source, letters, flags | re.IGNORECASE)}
    touched = union((ord(c), ord(c)) for c in letters)
    return union((*difference(sensitive, touched), *((ord(c), ord(c)) for c in matched)))
