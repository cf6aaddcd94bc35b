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
from ..expr import ANYTHING, EMPTY, Anchor, Chars, Concat, Expr, Look, Ranges, Repeat, Union, looks_around
from ..regex import bad_regex
from .classes import ClassReader
from .properties import LINE_ENDS, WORD

MAX_DEPTH = 64  # groups inside groups
NOT_REGULAR = "is not supported in a constraint (only regular expressions are)"

_COUNT = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_FLAGS = re.compile(r"\(\?([aimsu]+)\)")
_GROUP = re.compile(r"\(\?(?:P?<([^\W\d]\w*)>|([ims]*)(?:-([ims]+))?:)")
_LOOKS = {"(?=": (True, False), "(?!": (True, True), "(?<=": (False, False), "(?<!": (False, True)}
_REFUSED = {"(?>": "an atomic group", "(?(": "a conditional", "(?P=": "a backreference"}


def parse_ecma(source: str) -> Expr:
    """Give the texts in which an ECMA-262 regex matches somewhere.

    Raises: RequestError: bad_grammar with reason and place; grammar_budget if it is nested
    too deeply.
    """
    return _searched(_Parser(source).parse())


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
        self._source = source
        self._classes = ClassReader(source)
        self._place = 0
        self._depth = 0

    def parse(self) -> Expr:
        flags = Flags()
        found = _FLAGS.match(self._source)
        if found is not None:
            flags, self._place = flags.changed(found[1], True), found.end()
        expr = self._options(flags)
        if self._place < len(self._source):
            raise self._bad("a parenthesis closes that was not opened")
        return expr
