r"""Read the regexes of JSON Schema's `pattern`, with the meaning of ECMA-262.

That of its flag u: `\d` and `\w` are ASCII, `.` stops at all four ends of lines, `$` is the
end of the text, `\p{L}` is known. Beyond it, what patterns in the wild contain is read
kindly: needless escapes of signs (`\!`, `\-`, `\_`), a brace or bracket that is none, and of
Python `(?P<name>...)`, `\A`, `\Z` and flags (?ims) at the start. What is not regular is
refused by name and place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import RequestError
from .. import chars
from ..expr import (
    ANYTHING,
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
from .classes import NOT_REGULAR, Cursor, read_class, read_escape, with_case
from .properties import LINE_ENDS, WORD

MAX_DEPTH = 64  # groups inside groups
MAX_COUNT_DIGITS = 9

_COUNT = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_NO_LOW = re.compile(r"\{,[0-9]+\}")
_FLAGS = re.compile(r"\(\?([aimsu]+)\)")
_NAMED = re.compile(r"\(\?P?<([^\W\d]|\$)[\w$]*>")
_MODIFIED = re.compile(r"\(\?([ims]*)(?:-([ims]+))?:")
_LOOKS = (("(?=", True, False), ("(?!", True, True), ("(?<=", False, False), ("(?<!", False, True))
_ANCHORS: tuple[tuple[str, AnchorKind], ...] = ((r"\A", "begin"), (r"\Z", "end"), (r"\z", "end"))
_REFUSED = {"(?>": "an atomic group", "(?(": "a conditional", "(?P=": "a backreference"}


def parse_ecma(source: str) -> Expr:
    """Give the texts in which an ECMA-262 regex matches somewhere.

    Raises: RequestError: bad_grammar with reason and place; grammar_budget if it is nested
    too deeply.
    """
    return _searched(_searched(_Parser(source).parse(), "begin"), "end")


@dataclass(frozen=True, slots=True)
class Flags:
    """What the flags i, m and s say at a place."""

    ignores_case: bool = False
    is_each_line: bool = False
    is_any_dot: bool = False

    def changed(self, letters: str, value: bool) -> Flags:
        """Give the flags with those of `letters` on, or off."""
        return Flags(
            value if "i" in letters else self.ignores_case,
            value if "m" in letters else self.is_each_line,
            value if "s" in letters else self.is_any_dot,
        )


class _Parser:
    """Reads a pattern from the left to the right."""

    def __init__(self, source: str) -> None:
        self._cursor = Cursor(source)
        self._depth = 0

    def parse(self) -> Expr:
        flags = Flags()
        found = self._cursor.find(_FLAGS)
        if found is not None:
            flags = flags.changed(found[1], True)
        expr = self._options(flags)
        if not self._cursor.is_at_end:
            raise self._cursor.bad("a parenthesis closes that was not opened")
        return expr

    def _options(self, flags: Flags) -> Expr:
        options = [self._sequence(flags)]
        while self._cursor.take("|"):
            options.append(self._sequence(flags))
        return options[0] if len(options) == 1 else Union(tuple(options))

    def _sequence(self, flags: Flags) -> Expr:
        cursor = self._cursor
        parts: list[Expr] = []
        while not (cursor.is_at_end or cursor.is_at("|") or cursor.is_at(")")):
            anchor = self._anchor(flags)
            parts.append(self._repeated(self._atom(flags)) if anchor is None else anchor)
        return parts[0] if len(parts) == 1 else Concat(tuple(parts))

    def _anchor(self, flags: Flags) -> Expr | None:
        """Read what takes no character, if that is what comes next."""
        cursor = self._cursor
        for text, is_ahead, is_negated in _LOOKS:
            start = cursor.place
            if cursor.take(text):
                item = self._inside(flags, start)
                if not is_ahead and looks_around(item):
                    raise cursor.bad(f"a look inside a lookbehind {NOT_REGULAR}", start)
                return Look(item, is_ahead, is_negated)
        for text, kind in _ANCHORS:
            if cursor.take(text):
                return Anchor(kind)
        if cursor.is_at("^") or cursor.is_at("$"):
            is_begin = cursor.char() == "^"
            return _line_border(is_begin) if flags.is_each_line else _border(is_begin)
        if cursor.is_at(r"\b") or cursor.is_at(r"\B"):
            cursor.char()
            return _boundary(cursor.char() == "b")
        return None

    def _atom(self, flags: Flags) -> Expr:
        """Read a character, a set or a group."""
        cursor, start = self._cursor, self._cursor.place
        if cursor.is_at("("):
            return self._group(flags)
        if cursor.find(_COUNT) or cursor.is_at("*") or cursor.is_at("+") or cursor.is_at("?"):
            raise cursor.bad("there is nothing to repeat", start)
        match cursor.char():
            case ".":
                return _chars(() if flags.is_any_dot else LINE_ENDS, is_negated=True)
            case "[":
                return _chars(read_class(cursor, flags.ignores_case))
            case "\\":
                return _chars(read_escape(cursor, flags.ignores_case))
            case char:
                return _chars(with_case(((ord(char), ord(char)),), flags.ignores_case))

    def _group(self, flags: Flags) -> Expr:
        cursor, start = self._cursor, self._cursor.place
        for text, name in _REFUSED.items():
            if cursor.is_at(text):
                raise cursor.bad(f"{name} {NOT_REGULAR}", start)
        found = cursor.find(_MODIFIED)
        if found is not None:
            flags = flags.changed(found[1], True).changed(found[2] or "", False)
        elif not cursor.find(_NAMED):
            cursor.take("(")
            if cursor.is_at("?"):
                raise cursor.bad("this kind of group is not known here", start)
        return self._inside(flags, start)

    def _inside(self, flags: Flags, start: int) -> Expr:
        """Read a group behind its opening, with the parenthesis that closes it."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            message = f"grammar too large: a pattern with more than {MAX_DEPTH} nested groups"
            raise RequestError("grammar_budget", message)
        expr = self._options(flags)
        if not self._cursor.take(")"):
            raise self._cursor.bad("a parenthesis is not closed", start)
        self._depth -= 1
        return expr

    def _repeated(self, item: Expr) -> Expr:
        """Read how often an item comes; greedy or lazy is all one."""
        cursor, start = self._cursor, self._cursor.place
        low, high = 1, None
        if cursor.take("*"):
            low = 0
        elif cursor.take("?"):
            low, high = 0, 1
        elif cursor.find(_NO_LOW):
            raise cursor.bad("a count needs its lower bound: write {0,n}", start)
        elif found := cursor.find(_COUNT):
            if len(found[0]) > 2 * MAX_COUNT_DIGITS:
                raise cursor.bad("a count is too great", start)
            low, high = int(found[1]), int(found[3]) if found[3] else None
            high = high if found[2] else low
            if high is not None and high < low:
                raise cursor.bad("a count has its bounds the wrong way round", start)
        elif not cursor.take("+"):
            return item
        cursor.take("?")
        return Repeat(item, low, high)


def _chars(ranges: Ranges, is_negated: bool = False) -> Expr:
    return Chars(chars.encodable(chars.complement(ranges) if is_negated else ranges))


def _border(is_begin: bool) -> Expr:
    return Anchor("begin" if is_begin else "end")


def _line_border(is_begin: bool) -> Expr:
    return Union((_border(is_begin), Look(Chars(LINE_ENDS), not is_begin, False)))


def _boundary(is_boundary: bool) -> Expr:
    r"""Give `\b` or `\B`, as two looks of the same, or of different, kinds."""
    word = Chars(WORD)
    return Union(
        tuple(
            Concat((Look(word, False, is_negated), Look(word, True, is_negated != is_boundary)))
            for is_negated in (False, True)
        )
    )


def _searched(expr: Expr, border: AnchorKind) -> Expr:
    """Let any text be before `expr` (or after it), but where it is anchored there."""
    if expr == Anchor(border):
        return EMPTY
    is_begin = border == "begin"
    if isinstance(expr, Union) and _is_anchored(expr, border):
        return Union(tuple(_searched(option, border) for option in expr.options))
    parts = expr.parts if isinstance(expr, Concat) else (expr,)
    if isinstance(expr, Concat) and _is_anchored(expr, border):
        if is_begin:
            return Concat((_searched(parts[0], border), *parts[1:]))
        return Concat((*parts[:-1], _searched(parts[-1], border)))
    if is_begin:
        return Concat((ANYTHING, *_trimmed(parts)))
    return Concat((*reversed(_trimmed(parts[::-1])), ANYTHING))


def _trimmed(parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Leave out what any text before the parts can stand for: repeats past their least."""
    for place, part in enumerate(parts):
        if not isinstance(part, Repeat) or looks_around(part):
            return parts[place:]
        if part.low:
            return (Repeat(part.item, part.low, part.low), *parts[place + 1 :])
    return ()


def _is_anchored(expr: Expr, border: AnchorKind) -> bool:
    """Say whether it, or one of its options, begins (or ends) with the anchor."""
    match expr:
        case Union(options):
            return any(_is_anchored(option, border) for option in options)
        case Concat(parts) if parts:
            return _is_anchored(parts[0 if border == "begin" else -1], border)
        case _:
            return expr == Anchor(border)
