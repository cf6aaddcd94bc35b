"""Finite sets of texts, and all others, as automata given by code: no text is spelt out
before somebody gets to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from . import chars
from .expr import ANY, Ranges
from .language import Language, Machine
from .languages import Languages


def words(texts: Iterable[str], languages: Languages) -> Language:
    """Give the language of some texts."""
    rests = frozenset(texts)
    if len(rests) == 1:
        return languages.word(next(iter(rests)))
    return languages.machine(Listed(rests)) if rests else languages.nothing


def others(texts: Iterable[str], languages: Languages) -> Language:
    """Give the language of all texts but these."""
    rests = frozenset(texts)
    return languages.machine(Unlisted(rests)) if rests else languages.anything


def without(texts: frozenset[str], language: Language, languages: Languages) -> Language:
    """Give the texts of a language but for some."""
    if not texts:
        return language
    if isinstance(language.payload, Unlisted):
        return others(language.payload.rests | texts, languages)
    return languages.both((language, others(texts, languages)))


def rows(texts: Iterable[Sequence[Ranges]], languages: Languages) -> Language | None:
    """Give the language of texts given as sets of characters; None where two sets overlap."""
    kept = list(texts)
    sets = {ranges for row in kept for ranges in row}
    spans = sorted(span for ranges in sets for span in ranges)
    if any(high >= low for (_, high), (low, _) in pairwise(spans)) or () in sets:
        return None
    rests = frozenset("".join(chr(ranges[0][0]) for ranges in row) for row in kept)
    known = {ranges[0][0]: ranges for ranges in sets if ranges[0][0] != ranges[-1][1]}
    return languages.machine(Listed(rests, Sets(known) if known else None))


class Sets:
    """Sets of characters, apart from each other, by their first ones."""

    def __init__(self, ranges: Mapping[int, Ranges]) -> None:
        self.ranges = ranges


@dataclass(frozen=True, slots=True)
class Listed:
    """The rests of some texts. A character of `sets` stands for all of its set."""

    rests: frozenset[str]
    sets: Sets | None = None

    @property
    def alphabet(self) -> Ranges | None:
        """Give the characters of a shortest text."""
        text = min(self.rests, key=len)
        return chars.union((ord(char), ord(char)) for char in text)

    @property
    def is_accepting(self) -> bool:
        """True where one of the texts is whole."""
        return "" in self.rests

    def steps(self) -> tuple[tuple[Ranges, Machine | None], ...]:
        """Give what each next character leaves."""
        known = {} if self.sets is None else self.sets.ranges
        return tuple(
            (known.get(code, ((code, code),)), Listed(rests, self.sets))
            for code, rests in _by_first(self.rests).items()
        )


@dataclass(frozen=True, slots=True)
class Unlisted:
    """All texts but the rests of some."""

    rests: frozenset[str]

    @property
    def alphabet(self) -> Ranges | None:
        """Say that nothing is known of it."""
        return None

    @property
    def is_accepting(self) -> bool:
        """True where none of the texts is whole."""
        return "" not in self.rests

    def steps(self) -> tuple[tuple[Ranges, Machine | None], ...]:
        """Give what each next character leaves; any text behind one that none of them has."""
        groups = _by_first(self.rests)
        known = chars.union((code, code) for code in groups)
        free = (chars.difference(ANY.ranges, known), None)
        return (free, *((((code, code),), Unlisted(rests)) for code, rests in groups.items()))


def _by_first(texts: frozenset[str]) -> dict[int, frozenset[str]]:
    groups: dict[int, set[str]] = {}
    for text in texts:
        if text:
            groups.setdefault(ord(text[0]), set()).add(text[1:])
    return {code: frozenset(rests) for code, rests in groups.items()}
