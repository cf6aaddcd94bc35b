"""What expressions mean, said slowly: which places a match from a place can end at."""

from __future__ import annotations

from hypothesis import strategies as st

from plait.runtime.grammar.expr import (
    ANY,
    Anchor,
    Both,
    Chars,
    Concat,
    Expr,
    Look,
    Not,
    Repeat,
    Union,
    literal,
)

ALPHABET = "ab\n"


def fits(expr: Expr, text: str) -> bool:
    """Say whether the whole text matches."""
    return len(text) in ends(expr, text, 0)


def ends(expr: Expr, text: str, start: int) -> frozenset[int]:
    """Give the places at which a match that begins at `start` can end."""
    match expr:
        case Chars(ranges):
            code = ord(text[start]) if start < len(text) else -1
            is_in = any(low <= code <= high for low, high in ranges)
            return frozenset((start + 1,) if is_in else ())
        case Concat(parts):
            places = frozenset((start,))
            for part in parts:
                places = frozenset(e for place in places for e in ends(part, text, place))
            return places
        case Union(options):
            return frozenset(e for option in options for e in ends(option, text, start))
        case Both(parts):
            return frozenset(e for e in _places(text, start) if _all(parts, text[start:e]))
        case Not(item):
            return frozenset(e for e in _places(text, start) if not fits(item, text[start:e]))
        case Repeat(item, low, high):
            return _repeat(item, low, high, text, start)
        case Look(item, is_ahead, is_negated):
            if is_ahead:
                is_there = bool(ends(item, text, start))
            else:
                is_there = any(start in ends(item, text, begin) for begin in range(start + 1))
            return frozenset((start,) if is_there != is_negated else ())
        case Anchor():
            return frozenset((start,) if _holds(expr, text, start) else ())


def _places(text: str, start: int) -> range:
    return range(start, len(text) + 1)


def _all(parts: tuple[Expr, ...], text: str) -> bool:
    return all(fits(part, text) for part in parts)


def _repeat(item: Expr, low: int, high: int | None, text: str, start: int) -> frozenset[int]:
    most = low + len(text) + 1 if high is None else high
    places, found = frozenset((start,)), frozenset[int]()
    for count in range(most + 1):
        if count >= low:
            found |= places
        places = frozenset(e for place in places for e in ends(item, text, place))
    return found


def _holds(anchor: Anchor, text: str, place: int) -> bool:
    match anchor.kind:
        case "begin":
            return place == 0
        case "end":
            return place == len(text)
        case "last_line":
            return text[place:] in ("", "\n")
        case "line_begin":
            return place == 0 or text[place - 1] == "\n"
        case "line_end":
            return place == len(text) or text[place] == "\n"


_LETTERS = [literal("a"), literal("b"), literal("ab"), literal("\n"), ANY, Chars(())]
_LETTERS += [Chars(((97, 98),)), Concat(), Repeat(ANY, 0, 2), Repeat(ANY, 1, None)]
_BOUNDS = [(0, None), (1, None), (0, 1), (2, 2), (1, 3), (0, 5), (3, None), (0, 0), (2, 9)]

# Without looks and anchors, whose meaning depends on the place; with them.
REGULAR: st.SearchStrategy[Expr] = st.recursive(
    st.sampled_from(_LETTERS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: Concat(tuple(parts))),
        st.lists(inner, max_size=4).map(lambda parts: Union(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Both(tuple(parts))),
        inner.map(Not),
        st.tuples(inner, st.sampled_from(_BOUNDS)).map(lambda p: Repeat(p[0], *p[1])),
    ),
    max_leaves=7,
)
_ANCHORS = [Anchor("begin"), Anchor("end"), Anchor("last_line"), Anchor("line_begin")]
_ANCHORS += [Anchor("line_end")]
PLACED: st.SearchStrategy[Expr] = st.recursive(
    st.one_of(st.sampled_from(_LETTERS), st.sampled_from(_ANCHORS), REGULAR),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: Concat(tuple(parts))),
        st.lists(inner, max_size=3).map(lambda parts: Union(tuple(parts))),
        st.tuples(inner, st.sampled_from(_BOUNDS)).map(lambda p: Repeat(p[0], *p[1])),
        st.tuples(inner, st.booleans()).map(lambda p: Look(p[0], True, p[1])),
        st.tuples(REGULAR, st.booleans()).map(lambda p: Look(p[0], False, p[1])),
    ),
    max_leaves=6,
)
TEXTS = st.text(ALPHABET, max_size=6)
