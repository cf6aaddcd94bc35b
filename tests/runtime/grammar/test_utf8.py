"""Sets of characters as automata over bytes, in plain text and inside JSON strings."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.grammar import chars
from plait.runtime.grammar.expr import Ranges
from plait.runtime.grammar.utf8 import DEAD, WHOLE, ByteClasses

EDGES = [
    *[0, 8, 0x1F, 0x20, 0x22, 0x2F, 0x5C, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0xD7FF, 0xE000, 0xFFFF],
    *[0x10000, 0x103FF, 0x10400, 0x3FFFF, 0x10FFFF],
]
CODES = st.one_of(st.sampled_from(EDGES), st.integers(0, 0x10FFFF))
RANGES = st.lists(st.tuples(CODES, CODES).map(lambda p: (min(p), max(p))), max_size=5)
BROKEN = [b"\xed\xa0\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xf4\x90\x80\x80", b"\xff", b""]
BROKEN_JSON = [
    *[b"\\", b"\\u", b"\\x41", b"\\u12", b"\\ud800", b"\\udc00", b"\\ud800\\u0041", b"\\U0041"],
    *[b'"', b"\n", b"\x00", b"\\u00g0", b"\\'"],
]


def holds(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


def reads(classes: ByteClasses, root: int, data: bytes) -> bool:
    node = root
    for byte in data:
        if node in (DEAD, WHOLE):
            return False
        node = classes.nodes[node].table[byte]
    return node == WHOLE


def escapes(char: str) -> list[bytes]:
    """Give all ways to write a character in a JSON string, some with capitals."""
    units = char.encode("utf-16-be")
    hexes = [units[i : i + 2].hex() for i in range(0, len(units), 2)]
    ways = ["".join(f"\\u{h}" for h in hexes), "".join(f"\\u{h.upper()}" for h in hexes)]
    short = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
    if char in short:
        ways.append("\\" + short[char])
    if char >= " " and char not in '"\\':
        ways.append(char)
    return [way.encode() for way in ways]


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
    assert not any(reads(classes, root, broken) for broken in BROKEN)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(RANGES, st.lists(CODES, max_size=20))
def test_in_json_a_class_reads_each_escape_of_its_characters_and_nothing_else(
    ranges: Ranges, codes: list[int]
) -> None:
    wanted = chars.encodable(chars.union(ranges))
    classes = ByteClasses(range(256))
    root = classes.root(wanted, "json")
    borders = [c for low, high in wanted for c in (low - 1, low, high, high + 1)]
    for code in {*codes, *EDGES, *borders}:
        if 0 <= code <= chars.LAST and not 0xD800 <= code <= 0xDFFF:
            for way in escapes(chr(code)):
                assert json.loads(b'"' + way + b'"') == chr(code)
                assert reads(classes, root, way) == holds(wanted, code)
    assert not any(reads(classes, root, broken) for broken in (*BROKEN, *BROKEN_JSON))


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
    assert reads(classes, classes.root(((0xE9, 0xE9),), "json"), b"\\u00e9")


def test_in_json_a_character_without_raw_form_needs_its_escapes_spellable() -> None:
    classes = ByteClasses(set(range(256)) - {ord("u")})
    assert reads(classes, classes.root(((10, 10),), "json"), b"\\n")
    assert classes.root(((1, 1),), "json") == DEAD


@settings(derandomize=True, max_examples=100, deadline=None)
@given(RANGES)
def test_edges_table_and_borders_of_a_node_agree(ranges: Ranges) -> None:
    classes = ByteClasses(range(256))
    classes.root(chars.encodable(chars.union(ranges)), "json")
    for node in classes.nodes:
        table = [DEAD] * 256
        for low, high, target in node.edges:
            table[low : high + 1] = [target] * (high + 1 - low)
            assert {low, high + 1} <= node.borders
        assert node.table == tuple(table)
