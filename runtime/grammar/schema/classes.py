"""Escapes and character classes of ECMA-262 regexes, read to sets of characters."""

from __future__ import annotations

import re

from ...errors import RequestError
from .. import chars
from ..expr import Ranges
from ..regex import bad_regex
from .properties import DIGIT, WHITE, WORD, property_of

_SETS = {"d": DIGIT, "w": WORD, "s": WHITE}
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_PROPERTY = re.compile(r"\{([A-Za-z_]+(?:=[A-Za-z0-9_]+)?)\}")
_HEX2 = re.compile(r"[0-9A-Fa-f]{2}")
_UNICODE = re.compile(r"([0-9A-Fa-f]{4})|\{([0-9A-Fa-f]{1,6})\}")
_LOW_HALF = re.compile(r"\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})")
_LETTER = re.compile(r"[A-Za-z]")
NOT_REGULAR = "is not supported in a constraint (only regular expressions are)"


class Cursor:
    """A place in a pattern."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.place = 0

    @property
    def is_at_end(self) -> bool:
        """True behind the last character."""
        return self.place >= len(self.source)

    def is_at(self, text: str) -> bool:
        """Say whether `text` comes next."""
        return self.source.startswith(text, self.place)

    def take(self, text: str) -> bool:
        """Pass `text` if it comes next."""
        is_next = self.is_at(text)
        self.place += len(text) * is_next
        return is_next

    def find(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Pass what `pattern` matches here."""
        found = pattern.match(self.source, self.place)
        if found is not None:
            self.place = found.end()
        return found

    def char(self) -> str:
        """Pass one character."""
        if self.is_at_end:
            raise self.bad("the pattern ends too early")
        self.place += 1
        return self.source[self.place - 1]

    def bad(self, reason: str, place: int | None = None) -> RequestError:
        """Say what is wrong, here or at `place`."""
        return bad_regex(self.source, reason, self.place if place is None else place)


def read_class(cursor: Cursor, ignores_case: bool) -> Ranges:
    """Read what follows an opening bracket, with the closing one."""
    start = cursor.place - 1
    is_negated = cursor.take("^")
    found: list[tuple[int, int]] = []
    while not cursor.take("]"):
        if cursor.is_at_end:
            raise cursor.bad("a character class is not closed", start)
        found.extend(_class_item(cursor, ignores_case))
    ranges = chars.union(found)
    return chars.complement(ranges) if is_negated else ranges


def read_escape(cursor: Cursor, ignores_case: bool) -> Ranges:
    """Read what follows a backslash, if that stands for a character or a set."""
    return _ranges(_escape(cursor, is_in_class=False), ignores_case, cursor)


def with_case(ranges: Ranges, ignores_case: bool) -> Ranges:
    """Add the other cases of letters, if asked."""
    if not ignores_case:
        return ranges
    source = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
    return chars.ignoring_case(f"[{source}]", ranges, 0) if ranges else ranges


def _class_item(cursor: Cursor, ignores_case: bool) -> Ranges:
    """Read one character, range or set."""
    start = cursor.place
    first = _class_atom(cursor)
    if not cursor.is_at("-") or cursor.is_at("-]") or not isinstance(first, int):
        return _ranges(first, ignores_case, cursor)
    cursor.take("-")
    last = _class_atom(cursor)
    if not isinstance(last, int):  # a hyphen before a set is itself
        hyphen = ((ord("-"), ord("-")),)
        return (*with_case(((first, first),), ignores_case), *hyphen, *last)
    if last < first:
        raise cursor.bad(f"the range {chr(first)!r}-{chr(last)!r} is the wrong way round", start)
    return with_case(((first, last),), ignores_case)


def _ranges(found: int | Ranges, ignores_case: bool, cursor: Cursor) -> Ranges:
    r"""Give the characters of one escape; case matters to `\p{...}`, not to `\w`."""
    if isinstance(found, int):
        return with_case(((found, found),), ignores_case)
    return with_case(found, ignores_case and cursor.source[cursor.place - 1] == "}")


def _class_atom(cursor: Cursor) -> int | Ranges:
    char = cursor.char()
    return _escape(cursor, is_in_class=True) if char == "\\" else ord(char)


def _escape(cursor: Cursor, is_in_class: bool) -> int | Ranges:
    """Read what follows a backslash: a character, or a set of them."""
    start = cursor.place - 1
    char = cursor.char()
    if char in "dws":
        return _SETS[char]
    if char in "DWS":
        return chars.complement(_SETS[char.lower()])
    if char in "pP":
        return _property(cursor, start, is_negated=char == "P")
    if char in _CONTROLS:
        return _CONTROLS[char]
    if char == "b" and is_in_class:
        return 8
    if not (char.isascii() and char.isalnum()):
        return ord(char)
    if char in "0cxu":
        code = _code(cursor, char)
        if code is None:
            raise cursor.bad(f"\\{char} is not complete", start)
        return code
    if char in "123456789k" and not is_in_class:
        raise cursor.bad(f"a backreference {NOT_REGULAR}", start)
    raise cursor.bad(f"\\{char} is not an escape", start)


def _code(cursor: Cursor, char: str) -> int | None:
    r"""Read the number in `\0`, `\cA`, `\xHH`, `\uHHHH` and `\u{H...}`."""
    if char == "0":
        return None if re.match("[0-9]", cursor.source[cursor.place : cursor.place + 1]) else 0
    if char == "c":
        letter = cursor.find(_LETTER)
        return None if letter is None else ord(letter[0]) % 32
    if char == "x":
        digits = cursor.find(_HEX2)
        return None if digits is None else int(digits[0], 16)
    found = cursor.find(_UNICODE)
    if found is None:
        return None
    code = int(found[1] or found[2], 16)
    if 0xD800 <= code < 0xDC00 and found[1]:
        low = cursor.find(_LOW_HALF)
        if low is not None:
            return 0x10000 + ((code - 0xD800) << 10) + (int(low[1], 16) - 0xDC00)
    return code if code <= chars.LAST else None


def _property(cursor: Cursor, start: int, is_negated: bool) -> Ranges:
    found = cursor.find(_PROPERTY)
    if found is None:
        raise cursor.bad(r"\p needs the name of a property in braces, such as \p{L}", start)
    try:
        ranges = property_of(found[1])
    except LookupError as e:
        raise cursor.bad(str(e.args[0]), start) from e
    return chars.complement(ranges) if is_negated else ranges
