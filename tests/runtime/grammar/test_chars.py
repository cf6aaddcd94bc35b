"""Sets of code points, against Python's own answers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.grammar import chars
from plait.runtime.grammar.charset import CharSets
from plait.runtime.grammar.expr import Ranges

EDGES = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x10FFFF]
CODES = st.one_of(st.sampled_from(EDGES), st.integers(0, 0x10FFFF))
RANGES = st.lists(st.tuples(CODES, CODES).map(lambda p: (min(p), max(p))), max_size=5)


def holds(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(RANGES, RANGES, st.lists(CODES, max_size=20))
def test_set_algebra_is_that_of_sets(a: Ranges, b: Ranges, codes: list[int]) -> None:
    left, right = chars.union(a), chars.union(b)
    for code in [*codes, *EDGES]:
        is_left, is_right = holds(left, code), holds(right, code)
        assert is_left == any(low <= code <= high for low, high in a)
        assert holds(chars.complement(left), code) != is_left
        assert holds(chars.difference(left, right), code) == (is_left and not is_right)


@settings(derandomize=True, max_examples=20, deadline=None)
@given(st.sets(st.integers(0, 255), min_size=150))
def test_spellable_characters_are_those_whose_bytes_are_all_known(known: set[int]) -> None:
    ranges = chars.spellable(known)
    for code in (*EDGES, 0x61, 0xE9, 0x436, 0x20AC, 0x1F64F, *range(0x100, 0x200)):
        assert holds(ranges, code) == (set(chr(code).encode()) <= known)
    assert chars.spellable(()) == ()
    assert not holds(chars.spellable(range(256)), 0xD800)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(RANGES, RANGES)
def test_sets_are_one_object_each_and_keep_their_algebra(a: Ranges, b: Ranges) -> None:
    sets = CharSets()
    left, right = sets.get(chars.union(a)), sets.get(chars.union(b))
    assert sets.get(chars.union(a)) is left
    assert sets.union((left, right)).ranges == chars.union((*a, *b))
    both = sets.intersect(left, right)
    assert both is sets.intersect(right, left)
    assert both.ranges == chars.difference(left.ranges, chars.complement(right.ranges))
    assert sets.subtract(left, right).ranges == chars.difference(left.ranges, right.ranges)
    assert sets.intersect(left, sets.none) is sets.subtract(left, left) is sets.none


@pytest.mark.parametrize("class_text", ["[k-m]", "[\\u00df]", "[^a]", "[\\u0130i]", r"[\w]"])
def test_ignoring_case_gives_what_re_gives(class_text: str) -> None:
    letters = [*map(chr, range(0x250)), "\u212a", "\u1e9e", "\u0399"]
    plain = chars.union((ord(c), ord(c)) for c in letters if re.match(class_text, c))
    ranges = chars.ignoring_case(class_text, plain, 0)
    for char in letters:
        assert holds(ranges, ord(char)) == (re.match(class_text, char, re.I) is not None)


@pytest.mark.parametrize(
    ("name", "spelling"), [("DIGIT", r"\d"), ("SPACE", r"\s"), ("WORD", r"\w")]
)
@pytest.mark.parametrize("flags", [0, int(re.ASCII)])
def test_categories_are_those_of_re(name: str, spelling: str, flags: int) -> None:
    ranges = chars.category(name, flags)
    for code in (*range(0x800), 0x2028, 0x3000, 0x4E2D, 0xFF10, 0x1D7CE, 0x1F600):
        assert holds(ranges, code) == (re.match(spelling, chr(code), flags) is not None)
