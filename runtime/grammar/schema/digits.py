"""Digits between two bounds, as regular languages: compared from the left, place by place."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TypeAlias

from ..language import Language
from ..languages import Languages

# Whether all digits so far are those of the lower bound, and of the upper one.
Tight: TypeAlias = tuple[bool, bool]
_LOOSE: Tight = (False, False)


@dataclass(frozen=True, slots=True)
class Bound:
    """The digits of a bound, and whether it is itself outside."""

    digits: str
    is_exclusive: bool

    def rest(self, place: int) -> str:
        """Give its digits from `place` on, without zeros at the end."""
        return self.digits[place:].rstrip("0")


class Digits:
    """Makes languages of digits in one pool of languages."""

    def __init__(self, languages: Languages) -> None:
        self.languages = languages
        self.zero, self.any = self.between(0, 0), self.between(0, 9)

    def between(self, first: int, last: int) -> Language:
        """Give one digit from `first` to `last`."""
        sets = self.languages.sets
        ranges = ((48 + first, 48 + last),) if first <= last else ()
        return self.languages.chars(sets.get(ranges))

    def some(self, digit: Language, low: int, high: int) -> Language:
        """Give `low` to `high` times a digit."""
        return self.languages.repeat(digit, low, high)

    def fraction(self, digit: Language, max_digits: int) -> Language:
        """Give nothing more, or a point and up to `max_digits` times `digit`."""
        if not max_digits:
            return self.languages.empty
        return self.languages.repeat(self.after_point(self.some(digit, 1, max_digits)), 0, 1)

    def after_point(self, digits: Language) -> Language:
        """Give a point, and then `digits`."""
        return self.languages.concat(self.languages.word("."), digits)

    def not_zero(self, max_digits: int) -> Language:
        """Give digits that are not all zero: up to `max_digits` after the first zeros."""
        if max_digits < 1:
            return self.languages.nothing
        zeros = self.some(self.zero, 0, max_digits - 1)
        rest = self.some(self.any, 0, max_digits - 1)
        return self.languages.sequence((zeros, self.between(1, 9), rest))


@dataclass(frozen=True, slots=True)
class Table:
    """Texts of `num_whole` digits, and maybe a fraction, between two bounds of that form."""

    digits: Digits
    num_whole: int
    max_fraction: int
    has_lead: bool  # the first digit is not zero
    low: Bound | None
    high: Bound | None

    def language(self) -> Language:
        """Give the texts. Goes through the places from the right to the left."""
        if self.low is None and self.high is None:
            first = self.digits.between(1 if self.has_lead else 0, 9)
            return self.digits.languages.concat(first, self._free(1, self.digits.any))
        flags = list(
            itertools.product({False, self.low is not None}, {False, self.high is not None})
        )
        most = max(len(bound.digits) for bound in (self.low, self.high, Bound("", False)) if bound)
        place = min(max(most, self.num_whole), self.num_whole + self.max_fraction)
        found = {tight: self._tail(place, tight) for tight in flags}
        while place:
            place -= 1
            found = {tight: self._place(place, tight, found) for tight in flags}
        return found[self.low is not None, self.high is not None]

    def _place(self, place: int, tight: Tight, after: dict[Tight, Language]) -> Language:
        """Give what may follow at `place`, knowing what may follow one place later."""
        if tight == _LOOSE and (place or not self.has_lead):
            return self._free(place, self.digits.any)
        languages = self.digits.languages
        more = languages.union(
            languages.concat(self.digits.between(first, last), after[target])
            for first, last, target in self._steps(place, tight)
        )
        if place < self.num_whole:
            return more
        if place == self.num_whole:
            more = self.digits.after_point(more)
        return languages.union((more, languages.empty)) if self._may_end(place, tight) else more

    def _steps(self, place: int, tight: Tight) -> list[tuple[int, int, Tight]]:
        """Give the digits, first and last, that lead on, and what is tight after them."""
        is_low, is_high = tight
        first = 1 if self.has_lead and not place else 0
        low = _digit(self.low, place) if is_low else first
        high = _digit(self.high, place) if is_high else 9
        if low == high:
            return [(low, low, tight)]
        steps = [(low + is_low, high - is_high, _LOOSE)]
        if is_low:
            steps.append((low, low, (True, False)))
        if is_high:
            steps.append((high, high, (False, True)))
        return steps if low < high else []

    def _may_end(self, place: int, tight: Tight) -> bool:
        """Say whether the digits so far, and no others, are between the bounds."""
        is_low, is_high = tight
        if is_low and self.low is not None and (self.low.rest(place) or self.low.is_exclusive):
            return False
        is_over = self.high is not None and self.high.is_exclusive and not self.high.rest(place)
        return not (is_high and is_over)

    def _tail(self, place: int, tight: Tight) -> Language:
        """Give what may follow where the bounds have no more digits, or the text can have none."""
        languages = self.digits.languages
        if place == self.num_whole + self.max_fraction:
            return languages.empty if self._may_end(place, tight) else languages.nothing
        is_low, is_high = tight
        if is_high and self.high is not None:
            is_out = self.high.is_exclusive or (is_low and not self._may_end(place, tight))
            return languages.nothing if is_out else self._free(place, self.digits.zero)
        if not is_low or self._may_end(place, tight):
            return self._free(place, self.digits.any)
        rest = self.digits.not_zero(self.num_whole + self.max_fraction - place)
        return self.digits.after_point(rest) if place == self.num_whole else rest

    def _free(self, place: int, digit: Language) -> Language:
        """Give `digit` again and again, for all places left."""
        whole, rest = self.num_whole - place, self.num_whole + self.max_fraction - place
        if whole < 0:
            return self.digits.some(digit, 0, rest)
        fraction = self.digits.fraction(digit, self.max_fraction)
        return self.digits.languages.concat(self.digits.some(digit, whole, whole), fraction)


def _digit(bound: Bound | None, place: int) -> int:
    return int(bound.digits[place]) if bound is not None and place < len(bound.digits) else 0
