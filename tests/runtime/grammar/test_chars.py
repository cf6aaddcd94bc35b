"""Sets of code points, and their automata over UTF-8, against Python's own answers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.grammar import chars
from plait.runtime.grammar.expr import Ranges
from plait.runtime.grammar.utf8 import DEAD, WHOLE, ByteClasses

EDGES = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x10FFFF]
CODES = st.one_of(st.sampled_from(EDGES), st.integers(0, 0x10FFFF))
RANGES = st.lists(st.tuples(CODES, CODES).map(lambda p: (min(p), max(p))), max_size=5)


def holds(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


def reads(classes: ByteClasses, root: int, data: bytes) -> bool:
    node = root
    for byte in data:
        if node in (DEAD, WHOLE):
            return False
        node = classes.nodes[node].table[byte]
    return node == WHOLE


@settings(derandomize=True, max_examples=150, deadline=None)
@given(RANGES, RANGES, st.lists(CODES, max_size=20))
def test_set_algebra_is_that_of_sets(a: Ranges, b: Ranges, codes: list[int]) -> None:
    left, right = chars.union(a), chars.union(b)
    for code in [*codes, *EDGES]:
        is_left, is_right = holds(left, code), holds(right, code)
        assert is_left == any(low <= code <= high for low, high in a)
        assert holds(chars.complement(left), code) != is_left
        assert holds(chars.difference(left, right), code) == (is_left and not is_right)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(RANGES, st.lists(CODES, max_size=20))
def test_a_class_reads_the_utf8_of_its_characters_and_nothing_else(
    ranges: Ranges, codes: list[int]
) -> None:
    wanted = chars.encodable(chars.union(ranges))
    classes = ByteClasses(range(256))
    root = classes.root(wanted)
    borders = [c for low, high in wanted for c in (low - 1, low, high, high + 1)]
    for code in {*codes, *EDGES, *borders}:
        if 0 <= code <= chars.LAST and not 0xD800 <= code <= 0xDFFF:
            assert reads(classes, root, chr(code).encode()) == holds(wanted, code)
    for broken in (
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xf4\x90\x80\x80",
        b"\xff",
        b"",
    ):
        assert not reads(classes, root, broken)


def test_equal_classes_share_their_nodes() -> None:
    classes = ByteClasses(range(256))
    first = classes.root(((0x80, 0x10FFFF),))
    num_nodes = len(classes.nodes)
    assert classes.root(((0x80, 0x10FFFF),)) == first
    assert len(classes.nodes) == num_nodes


def test_a_character_with_a_byte_that_no_token_holds_is_out() -> None:
    classes = ByteClasses(set(range(256)) - {0xA9})
    assert classes.root(((0xE9, 0xE9),)) == DEAD  # é is C3 A9
    assert reads(classes, classes.root(((0xE8, 0xE9),)), "è".encode())


@pytest.mark.parametrize(
    ("name", "spelling"), [("DIGIT", r"\d"), ("SPACE", r"\s"), ("WORD", r"\w")]
)
@pytest.mark.parametrize("flags", [0, int(re.ASCII)])
def test_categories_are_those_of_re(name: str, spelling: str, flags: int) -> None:
    ranges = chars.category(name, flags)
    for code in (*range(0x800), 0x2028, 0x3000, 0x4E2D, 0xFF10, 0x1D7CE, 0x1F600):
        assert holds(ranges, code) == (re.match(spelling, chr(code), flags) is not None)
