"""Finite sets of texts, and all others, as automata given by code: no text is spelt out
before somebody gets to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Listed:
    """The rests of some texts."""

    rests: frozenset[str]

    @property
    def alphabet(self) -> Ranges | None:
        """Say that nothing is known of it."""
        return None

    @property
    def is_accepting(self) -> bool:
        """True where one of the texts is whole."""
        return "" in self.rests

    def steps(self) -> tuple[tuple[Ranges, Machine | None], ...]:
        """Give what each next character leaves."""
        return tuple(
            (((code, code),), Listed(rests)) for code, rests in _by_first(self.rests).items()
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
