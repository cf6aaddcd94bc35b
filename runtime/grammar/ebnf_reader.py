"""Read EBNF as xgrammar and llama.cpp (GBNF) write it."""

from __future__ import annotations

import re
import string
from collections.abc import Collection
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from ..errors import RequestError
from . import chars
from .expr import ANY, Ranges

WINDOW = 72  # characters of a line shown around a fault

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_DEFINES = re.compile(_NAME.pattern + r"[ \t\r\n]*::=")
_COUNT = re.compile(r"\{\s*([0-9]{1,9})\s*(,\s*([0-9]{1,9})?\s*)?\}")
_HEX = {"x": 2, "u": 4, "U": 8}
_LETTERS = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "b": 8, "a": 7, "e": 27, "0": 0}
_MARKS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass(frozen=True, slots=True)
class Text:
    """Exactly these characters."""

    text: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Ref:
    """A rule by its name; `place` is where the source says it."""

    name: str
    place: int


@dataclass(frozen=True, slots=True)
class Row:
    """The items in a row; none of them is the empty text."""

    items: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """One of the options."""

    options: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Many:
    """`low` to `high` times the item; `high` None is without end."""

    item: Body
    low: int
    high: int | None


Body: TypeAlias = Text | OneOf | Ref | Row | Alt | Many  # of a rule, or of what is in it


def read(source: str, parts: Collection[str] = ()) -> dict[str, Body]:
    """Give the rules by name, in their order, all defined once and none missing.

    `parts` are the names of the grammars in this one, each named at least once.

    Raises: RequestError (bad_grammar) with line, column and a caret. RecursionError if
    groups are nested too deeply.
    """
    return _Reader(source, parts).read()


def fault(source: str, place: int, reason: str) -> RequestError:
    """Say what is wrong, with a caret under the place."""
    line = source.count("\n", 0, place) + 1
    first = source.rfind("\n", 0, place) + 1
    column = place - first + 1
    start = max(first, place - WINDOW // 2)
    rest = source[start : start + WINDOW].split("\n")[0]
    shown = "".join(c if c.isprintable() else " " for c in rest)
    caret = " " * (place - start) + "^"
    message = f"ebnf: line {line}, column {column}: {reason}\n  {shown}\n  {caret}"
    return RequestError("bad_grammar", message)


class _Reader:
    """Reads from a place on; every method leaves the place after what it read."""

    def __init__(self, source: str, parts: Collection[str]) -> None:
        self._source = source
        self._parts = parts
        self._place = 0
        self._refs: list[Ref] = []

    def read(self) -> dict[str, Body]:
        rules: dict[str, Body] = {}
        self._skip()
        while self._place < len(self._source):
            place = self._place
            name = self._name("a rule: name ::= ...")
            if name in rules:
                raise fault(self._source, place, f"rule {name} is defined twice")
            if name in self._parts:
                reason = f"rule {name} is defined here and in parts; rename one of them"
                raise fault(self._source, place, reason)
            self._expect("::=")
            rules[name] = self._options()
            if self._place < len(self._source) and not self._at_rule():
                quote = self._source[self._place] == "'"
                hint = "; write double quotes" if quote else ""
                self._fail(f"expected a rule, a part of one or the end{hint}")
        if not rules:
            raise RequestError("bad_grammar", "ebnf: no rule; give at least root ::= ...")
        self._check_refs(rules)
        return rules

    def _check_refs(self, rules: dict[str, Body]) -> None:
        for ref in self._refs:
            if ref.name not in rules and ref.name not in self._parts:
                where = ", neither here nor in parts" if self._parts else ""
                raise fault(self._source, ref.place, f"rule {ref.name} is not defined{where}")
        named = {ref.name for ref in self._refs}
        for name in self._parts:
            if name not in named:
                message = f"ebnf: part {name}: no rule names it; name it, or leave the part out"
                raise RequestError("bad_grammar", message)

    def _options(self) -> Body:
        options = [self._row()]
        while self._take("|"):
            options.append(self._row())
        return options[0] if len(options) == 1 else Alt(tuple(options))

    def _row(self) -> Body:
        items: list[Body] = []
        while (item := self._item()) is not None:
            items.append(self._counted(item))
        return items[0] if len(items) == 1 else Row(tuple(items))

    def _item(self) -> Body | None:
        """Read one item; None at the end of a row."""
        char = self._source[self._place : self._place + 1]
        if char == '"':
            return self._text()
        if char == "[":
            return self._set()
        if self._take("."):
            return OneOf(ANY.ranges)
        if self._take("("):
            item = self._options()
            self._expect(")")
            return item
        if _NAME.match(char) and not self._at_rule():
            place = self._place
            ref = Ref(self._name("a rule"), place)
            self._refs.append(ref)
            return ref
        return None

    def _counted(self, item: Body) -> Body:
        while True:
            char = self._source[self._place : self._place + 1]
            if char and char in _MARKS:
                self._take(char)
                item = Many(item, *_MARKS[char])
            elif char == "{":
                item = Many(item, *self._count())
            else:
                return item

    def _count(self) -> tuple[int, int | None]:
        found = _COUNT.match(self._source, self._place)
        if found is None:
            self._fail("expected {m}, {m,} or {m,n} with numbers of at most 9 digits")
        low = int(found[1])
        high = low if found[2] is None else None if found[3] is None else int(found[3])
        if high is not None and high < low:
            self._fail(f"{found[0]}: the first number is the larger one")
        self._place = found.end()
        self._skip()
        return low, high

    def _text(self) -> Body:
        start = self._place
        self._place += 1
        found: list[str] = []
        while (char := self._source[self._place : self._place + 1]) != '"':
            if char in ("", "\n"):
                raise fault(self._source, start, 'the text has no closing "')
            found.append(chr(self._char()))
        self._place += 1
        self._skip()
        return Text("".join(found)) if found else Row(())

    def _set(self) -> Body:
        start = self._place
        self._place += 1
        is_negated = self._source.startswith("^", self._place)
        self._place += is_negated
        found: list[tuple[int, int]] = []
        while not self._source.startswith("]", self._place):
            if self._place >= len(self._source):
                raise fault(self._source, start, "the set has no closing ]")
            found.append(self._range())
        if not found:
            raise fault(self._source, start, "a set needs at least one character")
        self._place += 1
        self._skip()
        ranges = chars.union(found)
        return OneOf(chars.encodable(chars.complement(ranges) if is_negated else ranges))

    def _range(self) -> tuple[int, int]:
        place = self._place
        low = high = self._char()
        is_range = self._source.startswith("-", self._place)
        if is_range and not self._source.startswith("-]", self._place):
            self._place += 1
            if self._place >= len(self._source):
                self._fail("the set has no closing ]")
            high = self._char()
        if high < low:
            raise fault(self._source, place, "the range runs backwards")
        return low, high

    def _char(self) -> int:
        """Read one character of a text or a set, escaped or not."""
        place = self._place
        char = self._source[place]
        self._place += 1
        code = ord(char)
        if char == "\\":
            code = self._escape(place)
        if chars.SURROGATES[0] <= code <= chars.SURROGATES[1]:
            raise fault(self._source, place, "a lone surrogate has no UTF-8 form")
        return code

    def _escape(self, place: int) -> int:
        letter = self._source[self._place : self._place + 1]
        self._place += 1
        if letter in _HEX:
            digits = self._source[self._place : self._place + _HEX[letter]]
            is_whole = len(digits) == _HEX[letter] and set(digits) <= set(string.hexdigits)
            if is_whole and int(digits, 16) <= chars.LAST:
                self._place += len(digits)
                return int(digits, 16)
        elif letter in _LETTERS:
            return _LETTERS[letter]
        elif letter and letter in string.punctuation:
            return ord(letter)
        raise fault(self._source, place, f"unknown escape \\{letter}")

    def _name(self, what: str) -> str:
        found = _NAME.match(self._source, self._place)
        if found is None:
            self._fail(f"expected {what}")
        self._place = found.end()
        self._skip()
        return found[0]

    def _at_rule(self) -> bool:
        return _DEFINES.match(self._source, self._place) is not None

    def _take(self, mark: str) -> bool:
        if not self._source.startswith(mark, self._place):
            return False
        self._place += len(mark)
        self._skip()
        return True

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            self._fail(f"expected {mark}")

    def _skip(self) -> None:
        found = _SPACE.match(self._source, self._place)
        assert found is not None
        self._place = found.end()

    def _fail(self, reason: str) -> NoReturn:
        raise fault(self._source, self._place, reason)
