"""Read a regex with Python's own parser, and give it Python's meaning for fullmatch.

Greedy, lazy and grouping change nothing about which texts match. What is not regular is
refused by name and place.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable
from typing import TypeAlias, cast

from ..errors import RequestError
from . import chars
from .expr import (
    ANY,
    EMPTY,
    Anchor,
    AnchorKind,
    Chars,
    Concat,
    Expr,
    Look,
    Ranges,
    Repeat,
    Union,
    looks_around,
)

Item: TypeAlias = tuple[object, object]  # operation and argument, as `re` parses them
Tree: TypeAlias = Iterable[Item]

MAX_OPTIONS = 100  # of an atomic group
WINDOW = 60  # characters of the pattern shown around a fault

_parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?:P[=<>]|<[=!]|[=!:>(#])?|[*+?}]\+|.", re.DOTALL
)
_REFUSED = {
    "ASSERT": ("a look inside a lookbehind", r"\(\?<[=!]"),
    "GROUPREF": ("a backreference", r"\\[1-9]|\(\?P="),
    "GROUPREF_IGNORE": ("a backreference", r"\\[1-9]|\(\?P="),
    "GROUPREF_EXISTS": ("a conditional", r"\(\?\("),
    "ATOMIC_GROUP": ("an atomic group, but of words or of one repeated character,", r"\(\?>"),
    "POSSESSIVE_REPEAT": ("a possessive repeat of more than one character", r"[*+?}]\+"),
}
_CLASS_TEXT = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def parse(source: str) -> Expr:
    """Parse a Python regex.

    Raises: RequestError: bad_grammar with place and reason; grammar_budget if it is
    nested too deeply to read.
    """
    try:
        tree = _parser.parse(source)
        return _Reader(source).read(tree, int(tree.state.flags))
    except re.error as e:
        raise bad_regex(source, e.msg, e.pos) from e
    except (OverflowError, Warning) as e:  # warnings: only where they are made errors
        raise bad_regex(source, str(e), None) from e
    except RecursionError as e:
        message = f"grammar too large: the regex of {len(source)} characters is nested too deeply"
        raise RequestError("grammar_budget", message) from e


def bad_regex(source: str, reason: str, place: int | None) -> RequestError:
    """Say what is wrong with a regex, with a caret under the place."""
    if place is None:
        return RequestError("bad_grammar", f"regex {source[:WINDOW]!r}: {reason}")
    start = max(0, place - WINDOW // 2)
    shown = "".join(c if c.isprintable() else " " for c in source[start : start + WINDOW])
    caret = " " * (place - start) + "^"
    return RequestError("bad_grammar", f"regex: {reason} at place {place}\n  {shown}\n  {caret}")


class _Reader:
    """Turns `re`'s tree into expressions; `flags` are those that hold at the place."""

    def __init__(self, source: str) -> None:
        self._source = source

    def read(self, tree: Tree, flags: int) -> Expr:
        parts = [self._read_item(str(op), argument, flags) for op, argument in tree]
        return parts[0] if len(parts) == 1 else Concat(tuple(parts))

    def _read_item(self, op: str, argument: object, flags: int) -> Expr:
        match op:
            case "LITERAL" if not flags & re.IGNORECASE:
                code = cast("int", argument)
                return Chars(((code, code),) if chars.is_encodable(code) else ())
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                return Chars(chars.encodable(_ranges(op, argument, flags)))
            case "BRANCH":
                _, trees = cast("tuple[None, list[Tree]]", argument)
                return Union(tuple(self.read(tree, flags) for tree in trees))
            case "SUBPATTERN":
                _, added, removed, tree = cast("tuple[object, int, int, Tree]", argument)
                return self.read(tree, _combine(flags, added, removed))
            case "MAX_REPEAT" | "MIN_REPEAT":
                low, high, tree = cast("tuple[int, int, Tree]", argument)
                is_lazy = op == "MIN_REPEAT"
                return Repeat(self.read(tree, flags), int(low), _bound(high), is_lazy)
            case "POSSESSIVE_REPEAT":
                low, high, tree = cast("tuple[int, int, Tree]", argument)
                return self._possessive(Repeat(self.read(tree, flags), int(low), _bound(high)), op)
            case "ATOMIC_GROUP":
                return self._atomic(self.read(cast("Tree", argument), flags))
            case "ASSERT" | "ASSERT_NOT":
                direction, tree = cast("tuple[int, Tree]", argument)
                return self._look(self.read(tree, flags), direction, op == "ASSERT_NOT")
            case "AT":
                return self._read_anchor(str(argument), flags)
            case "FAILURE":
                return Chars(())
            case _:
                raise self._refuse(op)

    def _read_anchor(self, name: str, flags: int) -> Expr:
        is_each_line = bool(flags & re.MULTILINE)
        kinds: dict[str, AnchorKind] = {
            "AT_BEGINNING": "line_begin" if is_each_line else "begin",
            "AT_BEGINNING_STRING": "begin",
            "AT_END": "line_end" if is_each_line else "last_line",
            "AT_END_STRING": "end",
        }
        if name in kinds:
            return Anchor(kinds[name])
        if name not in ("AT_BOUNDARY", "AT_NON_BOUNDARY"):
            raise self._refuse(name)
        return _boundary(Chars(chars.category("WORD", flags & re.ASCII)), name == "AT_BOUNDARY")

    def _look(self, item: Expr, direction: int, is_negated: bool) -> Expr:
        if direction < 0 and looks_around(item):
            raise self._refuse("ASSERT")
        return Look(item, direction > 0, is_negated)

    def _possessive(self, greedy: Repeat, op: str) -> Expr:
        """Take all characters of a set that there are: fewer than the most only before others."""
        item, low, high = greedy.item, greedy.low, greedy.high
        if not isinstance(item, Chars):
            raise self._refuse(op)
        no_more = Look(item, is_ahead=True, is_negated=True)
        if high is None:
            return Concat((greedy, no_more))
        all_of_them = Repeat(item, high, high)
        if low == high:
            return all_of_them
        return Union((all_of_them, Concat((Repeat(item, low, high - 1), no_more))))

    def _atomic(self, item: Expr) -> Expr:
        """Take the first option that matches, whatever follows."""
        if isinstance(item, Repeat) and isinstance(item.item, Chars) and not item.is_lazy:
            return self._possessive(item, "ATOMIC_GROUP")
        options = _words(item)
        if options is None:
            raise self._refuse("ATOMIC_GROUP")
        first = (Look(Union(options[:i]), True, True) for i in range(len(options)))
        return Union(tuple(Concat((look, o)) for look, o in zip(first, options, strict=True)))

    def _refuse(self, op: str) -> RequestError:
        name, spelling = _REFUSED.get(op, (op.lower(), "(?!)"))
        found = (t for t in _TOKEN.finditer(self._source) if re.match(spelling, t.group()))
        token = next(found, None)
        reason = f"{name} is not supported in a constraint (only regular expressions are)"
        return bad_regex(self._source, reason, None if token is None else token.start())


def _bound(high: object) -> int | None:
    return None if str(high) == "MAXREPEAT" else int(str(high))


def _words(expr: Expr) -> tuple[Expr, ...] | None:
    """Give the rows of character sets that `expr` stands for, in the order `re` tries them.

    None if they are not of one length each, or more than MAX_OPTIONS.
    """
    found: tuple[Expr, ...] | None = None
    match expr:
        case Chars():
            return (expr,)
        case Union(options):
            rows = [_words(option) for option in options]
            if None not in rows:
                found = tuple(word for row in rows for word in row or ())
        case Concat(parts):
            found = (EMPTY,)
            for part in parts:
                ends = _words(part)
                if ends is None or len(found) * len(ends) > MAX_OPTIONS:
                    return None
                found = tuple(Concat((begin, end)) for begin in found for end in ends)
        case _:
            pass
    return None if found is None or len(found) > MAX_OPTIONS else found


def _boundary(word: Chars, is_boundary: bool) -> Expr:
    r"""Give `\b`, or `\B`, which Python does not find in the empty text."""

    def sides(behind: bool, ahead: bool) -> tuple[Expr, Expr]:
        return Look(word, False, not behind), Look(word, True, not ahead)

    if is_boundary:
        return Union((Concat(sides(True, False)), Concat(sides(False, True))))
    anywhere = Union((Look(ANY, False, False), Look(ANY, True, False)))
    outside = Concat((*sides(False, False), anywhere))
    return Union((Concat(sides(True, True)), outside))


def _combine(flags: int, added: int, removed: int) -> int:
    """Give the flags inside a group; (?a) and (?u) replace each other."""
    kinds = re.ASCII | re.UNICODE | re.LOCALE
    kept = flags & ~int(kinds) if added & kinds else flags
    return (kept | added) & ~removed


def _ranges(op: str, argument: object, flags: int) -> Ranges:
    """Give the characters of one class, flags applied."""
    if op == "ANY":
        newline = () if flags & re.DOTALL else ((10, 10),)
        return chars.complement(newline)
    is_negated = op == "NOT_LITERAL"
    items = cast("list[Item]", argument) if op == "IN" else [("LITERAL", argument)]
    found: list[tuple[int, int]] = []
    source = ""
    for kind, value in items:
        if str(kind) == "NEGATE":
            is_negated = True
            continue
        ranges, spelling = _class_item(str(kind), value, flags)
        found.extend(ranges)
        source += spelling
    sensitive = chars.union(found)
    if flags & re.IGNORECASE:
        sensitive = chars.ignoring_case(f"[{source}]", sensitive, flags & re.ASCII)
    return chars.complement(sensitive) if is_negated else sensitive


def _class_item(kind: str, value: object, flags: int) -> tuple[Ranges, str]:
    """Give the characters of one item of a class, and a spelling that `re` reads."""
    if kind == "LITERAL":
        code = cast("int", value)
        return ((code, code),), f"\\U{code:08x}"
    if kind == "RANGE":
        low, high = cast("tuple[int, int]", value)
        return ((low, high),), f"\\U{low:08x}-\\U{high:08x}"
    name = str(value).removeprefix("CATEGORY_")  # kind is CATEGORY
    base = name.removeprefix("NOT_")
    ranges = chars.category(base, flags & re.ASCII)
    spelling = _CLASS_TEXT[base]
    if name != base:
        return chars.complement(ranges), spelling.upper()
    return ranges, spelling
