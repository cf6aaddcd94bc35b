"""What a terminal's regex asks of the text around a place, and what nobody can answer there."""

from __future__ import annotations

from typing import Literal, TypeAlias

from .build import build_language
from .expr import (
    ANY,
    ANYTHING,
    Anchor,
    Both,
    Chars,
    Concat,
    Expr,
    Look,
    Not,
    Repeat,
    Union,
    looks_around,
    parts_of,
)
from .language import Language, is_nullable
from .languages import Languages

Empties: TypeAlias = Literal["never", "last", "early"]  # where the empty text is preferred
NEWLINE = Chars(((10, 10),))
NO_NEWLINE = Chars(((0, 9), (11, 0xD7FF), (0xE000, 0x10FFFF)))

# What must not follow where an anchor of an end matches.
_AFTER_END: dict[str, Expr] = {
    "end": ANY,
    "last_line": Union((Concat((NEWLINE, ANY)), NO_NEWLINE)),
    "line_end": NO_NEWLINE,
}


class Unclear(Exception):
    """What a terminal matches depends on what cannot be known; the reason names it."""


class Looks:
    """The looks and anchors of one regex. Looks behind see the terminal's own text only."""

    def __init__(self, expr: Expr, languages: Languages) -> None:
        self._languages = languages
        self._places: dict[Expr, tuple[int, int]] = {}  # place in the histories, width
        self._histories: list[Language] = []
        self.has_any = looks_around(expr)
        self._find(expr)
        self.histories = tuple(self._histories)
        self.width = max([1, *(width for _, width in self._places.values())])

    def ahead(self, look: Look | Anchor) -> tuple[Language, bool]:
        """Give the texts that must come next, with anything after them, or must not (True)."""
        if isinstance(look, Anchor):
            item, is_negated = _AFTER_END[look.kind], True
        else:
            item, is_negated = look.item, look.is_negated
        return build_language(Concat((item, ANYTHING)), self._languages), is_negated

    def holds_behind(
        self, look: Look | Anchor, behind: tuple[Language, ...], num_read: int
    ) -> bool:
        """Say whether the text so far ends as asked; `behind` are the histories after it.

        Raises: Unclear if that depends on what stands before the terminal.
        """
        is_negated = isinstance(look, Look) and look.is_negated
        place, width = self._places[_history(look)]
        if is_nullable(behind[place]):
            return not is_negated
        if num_read < width:
            name = "an anchor" if isinstance(look, Anchor) else "a lookbehind or \\b"
            raise Unclear(f"{name} that depends on the text before the terminal")
        return is_negated

    def _find(self, expr: Expr) -> None:
        """Number the histories, and refuse what has no clear meaning."""
        match expr:
            case Look() if looks_around(expr.item):
                raise Unclear("a look inside a look")
            case Look(is_ahead=False) | Anchor("begin" | "line_begin"):
                self._add_history(_history(expr))
            case Repeat(item, _, high) if high != 1 and empties(item) == "early":
                raise Unclear("a repeat of what may be empty and prefers to be")
            case _:
                for part in parts_of(expr):
                    self._find(part)

    def _add_history(self, item: Expr) -> None:
        if item not in self._places:
            self._places[item] = len(self._histories), max(1, _width(item))
            whole = build_language(Concat((ANYTHING, item)), self._languages)
            self._histories.append(whole)


def empties(expr: Expr) -> Empties:
    """Say whether the empty text matches, and whether `re` tries it last."""
    match expr:
        case Chars():
            return "never"
        case Concat(parts):
            kinds = [empties(part) for part in parts]
            if "never" in kinds:
                return "never"
            return "early" if "early" in kinds else "last"
        case Union(options):
            is_early = any(empties(option) != "never" for option in options[:-1])
            return "early" if is_early else empties(options[-1])
        case Repeat(item, low, high, is_lazy):
            if high == 0:
                return "last"
            if not low and is_lazy:
                return "early"
            kind = empties(item)
            return "last" if not low and kind == "never" else kind
        case _:
            return "last"


def _history(look: Look | Anchor) -> Expr:
    """Give what stands behind; the text's own beginning is a set without characters."""
    if isinstance(look, Look):
        return look.item
    return NEWLINE if look.kind == "line_begin" else Chars(())


def _width(expr: Expr) -> int:
    """Give the characters that a lookbehind sees; `re` allows only a fixed number."""
    match expr:
        case Chars():
            return 1
        case Concat(parts):
            return sum(map(_width, parts))
        case Repeat(item, _, high):
            return _width(item) * (high or 0)
        case Union(parts) | Both(parts):
            return max(map(_width, parts), default=0)
        case Not() | Look() | Anchor():
            return 0
