"""From expressions to languages: looks and anchors become products with what follows."""

from __future__ import annotations

from collections.abc import Sequence

from .expr import (
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
from .language import Language
from .languages import Languages
from .words import rows

FEW = 32  # options; a list of more words than that is read as one trie


def build_language(expr: Expr, languages: Languages) -> Language:
    """Give the language of the texts that `expr` matches as a whole."""
    builder = _Builder(languages)
    builder.find_histories(expr)
    body = builder.build(expr, languages.empty)
    return languages.tracked(body, builder.histories)


class _Builder:
    """Builds each part together with what follows it, so that a look can see that."""

    def __init__(self, languages: Languages) -> None:
        self._languages = languages
        self._places: dict[Expr, int] = {}
        self.histories: list[Language] = []

    def find_histories(self, expr: Expr) -> None:
        """Number all that is asked of the text behind, before the first part is built."""
        match expr:
            case Anchor("begin" | "line_begin"):
                self._add_history(expr, self._line_start(expr))
            case Look(item, is_ahead=False):
                whole = self._languages.concat(self._languages.anything, self._whole(item))
                self._add_history(item, whole)
            case _:
                for part in parts_of(expr):
                    self.find_histories(part)

    def build(self, expr: Expr, then: Language) -> Language:
        languages = self._languages
        match expr:
            case Chars(ranges):
                return languages.concat(languages.chars(languages.sets.get(ranges)), then)
            case Anchor():
                return self._anchor(expr, then)
            case Look():
                return self._look(expr, then)
            case Concat(parts):
                for part in reversed(parts):
                    then = self.build(part, then)
                return then
            case Union(options):
                found = self._words(options) if len(options) > FEW else None
                if found is not None:
                    return languages.concat(found, then)
                return languages.union(self.build(option, then) for option in options)
            case Both(parts):
                whole = [self._whole(part) for part in parts]
                return languages.concat(languages.both(whole), then)
            case Not(item):
                return languages.concat(languages.negate(self._whole(item)), then)
            case Repeat(item, low, high):
                if looks_around(item):
                    return self._loop(item, low, high, then)
                return languages.concat(languages.repeat(self._whole(item), low, high), then)

    def _words(self, options: Sequence[Expr]) -> Language | None:
        """Give the language of a list of plain words; None if it is none."""
        parts = [option.parts if isinstance(option, Concat) else (option,) for option in options]
        texts = [[p.ranges for p in row if isinstance(p, Chars)] for row in parts]
        if any(len(text) < len(row) for text, row in zip(texts, parts, strict=True)):
            return None
        return rows(texts, self._languages)

    def _whole(self, expr: Expr) -> Language:
        return self.build(expr, self._languages.empty)

    def _loop(self, item: Expr, low: int, high: int | None, then: Language) -> Language:
        """Unfold a repeat round by round, each before the text that follows it."""
        languages = self._languages
        if high == 0:
            return then

        def unfold() -> Language:
            rest = self._loop(item, max(low - 1, 0), None if high is None else high - 1, then)
            once_more = self.build(item, rest)
            return languages.union((once_more, then)) if low == 0 else once_more

        return languages.loop((id(self), item, low, high, then), unfold)

    def _anchor(self, anchor: Anchor, then: Language) -> Language:
        languages = self._languages
        newline = languages.word("\n")
        match anchor.kind:
            case "end":
                return languages.both((then, languages.empty))
            case "last_line":
                return languages.both((then, languages.repeat(newline, 0, 1)))
            case "line_end":
                lines = languages.concat(newline, languages.anything)
                return languages.both((then, languages.union((lines, languages.empty))))
            case "begin" | "line_begin":
                return self._behind(anchor, False, then)

    def _look(self, look: Look, then: Language) -> Language:
        languages = self._languages
        if not look.is_ahead:
            return self._behind(look.item, look.is_negated, then)
        ahead = self.build(look.item, languages.anything)
        return languages.both((then, languages.negate(ahead) if look.is_negated else ahead))

    def _line_start(self, anchor: Anchor) -> Language:
        languages = self._languages
        if anchor.kind == "begin":
            return languages.empty
        lines = languages.concat(languages.anything, languages.word("\n"))
        return languages.union((lines, languages.empty))

    def _add_history(self, key: Expr, history: Language) -> None:
        if key not in self._places:
            self._places[key] = len(self.histories)
            self.histories.append(history)

    def _behind(self, key: Expr, is_negated: bool, then: Language) -> Language:
        look = self._languages.behind(self._places[key], is_negated)
        return self._languages.concat(look, then)
