"""Numbers on a grid, such as the multiples of 0.25: an automaton of remainders.

A state that no number on the grid can be reached from is never made, so nobody has to
search: whether there is one is plain arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from ...errors import RequestError
from ..expr import Ranges
from ..language import Language, Machine
from ..languages import Languages
from .spans import MAX_ASKED, MAX_DIGITS, Span

MIN_SCALE = 2  # digits after the point that a number on a coarser grid may have, zeros
MAX_STEP_DIGITS = 1000


@dataclass(frozen=True, slots=True)
class Step:
    """The number size / 10**scale, above zero."""

    size: int
    scale: int

    def divides(self, other: Step) -> bool:
        """Say whether all multiples of the other are multiples of it."""
        scale = max(self.scale, other.scale)
        return other.at(scale) % self.at(scale) == 0

    def at(self, scale: int) -> int:
        """Give the least size above zero that, over 10**scale, is a multiple of the step."""
        if scale >= self.scale:
            return self.size * int(10 ** (scale - self.scale))
        return self.size // math.gcd(self.size, 10 ** (self.scale - scale))


def common_step(multiples: Iterable[Decimal]) -> Step:
    """Give the step whose multiples are those that all have in common; one at least is given.

    Raises: RequestError (bad_grammar) if one is not above zero or has too many digits.
    """
    steps = [_step(value) for value in multiples]
    scale = max(step.scale for step in steps)
    size = math.lcm(*(step.at(scale) for step in steps))
    while scale and size % 10 == 0:
        size, scale = size // 10, scale - 1
    return Step(size, scale)


def is_multiple(value: Decimal, step: Decimal) -> bool:
    """Say whether `value` is `step` times an integer, exactly."""
    size, unit = coefficient(value), coefficient(step)
    shift = exponent(value) - exponent(step)
    if shift >= 0:
        return bool(size * pow(10, shift, unit) % unit == 0)
    return size == 0 or (-shift < len(str(size)) and size % (unit * 10**-shift) == 0)


def coefficient(value: Decimal) -> int:
    """Give the digits of a number as an integer, without its sign."""
    return int("".join(map(str, value.as_tuple().digits)))


def exponent(value: Decimal) -> int:
    """Give the power of ten that the digits of a finite number are times."""
    return int(value.as_tuple().exponent)


def multiples_language(
    step: Step, span: Span, languages: Languages, scale: int | None = None
) -> Language:
    """Give the texts of the multiples of `step` in `span`, without exponent.

    They have up to `scale` digits after the point; if that is not given, as many as the
    step needs.
    """
    span = span.clipped()
    if scale is None:
        scale = min(max(step.scale, MIN_SCALE), MAX_ASKED)
    low, high = _scaled_up(span, scale)
    longest = max(span.max_whole(), min(len(str(step.at(scale))) - scale + 1, MAX_DIGITS))
    grid = Grid(
        step.at(scale),
        scale,
        str(low).zfill(scale + 1),
        None if high is None else str(high).zfill(scale + 1),
        longest,
    )
    start = Place(grid, 0, -1, 0, 0, -1 if high is None else 0)
    if (high is not None and low > high) or not start.steps():
        return languages.nothing
    return languages.machine(start)


@dataclass(frozen=True, slots=True)
class Grid:
    """The multiples of `size` from `low` to `high`, all in units of 10**-scale.

    The bounds are digits, one at least before the point.
    """

    size: int
    scale: int
    low: str
    high: str | None
    max_whole: int  # digits before the point

    def period(self, num_fraction: int) -> int:
        """Give by how much digits may differ that lead to the same numbers of the grid."""
        return self.size // math.gcd(self.size, 10 ** (self.scale - num_fraction))


@dataclass(frozen=True, slots=True)
class Place:
    """What is known of a number after its first digits; a `Machine`.

    `low_side` and `high_side` compare the digits so far with the first digits of the bounds
    (-1 below, 0 equal, 1 above). They count only if the number gets as long as the bound.
    """

    grid: Grid
    num_whole: int
    num_fraction: int  # -1 before the point
    remainder: int
    low_side: int
    high_side: int
    has_zero: bool = False  # the digit before the point is 0: no other follows it

    @property
    def alphabet(self) -> Ranges | None:
        """Give the digits and the point: with them no place is a dead end."""
        return ((46, 46), (48, 57))

    @property
    def is_accepting(self) -> bool:
        """True where the digits so far are a number of the grid."""
        if not self.num_whole or not self.num_fraction:
            return False
        rests = self._rests(self.num_whole)
        num_left = self._num_left(self.num_whole)
        is_inside = rests is not None and rests[0] == 0
        return is_inside and self.remainder * int(10**num_left) % self.grid.size == 0

    def steps(self) -> tuple[tuple[Ranges, Machine], ...]:
        """Give the digits, and the point, after which there is still a number of the grid."""
        found: dict[Machine, list[tuple[int, int]]] = {}
        if self._takes_digit():
            for digit in range(10):
                target = self._after(digit)
                if target._is_live():
                    found.setdefault(target, []).append((48 + digit, 48 + digit))
        if self.num_whole and self.num_fraction < 0 and self.grid.scale:
            target = replace(self, num_fraction=0)
            if target._is_live():
                found[target] = [(46, 46)]
        return tuple((tuple(ranges), target) for target, ranges in found.items())

    def _takes_digit(self) -> bool:
        if self.num_fraction >= 0:
            return self.num_fraction < self.grid.scale
        return not self.has_zero and self.num_whole < self.grid.max_whole

    def _after(self, digit: int) -> Place:
        place = self.num_whole + max(self.num_fraction, 0)
        is_whole = self.num_fraction < 0
        num_fraction = self.num_fraction + (not is_whole)
        return Place(
            self.grid,
            self.num_whole + is_whole,
            num_fraction,
            (self.remainder * 10 + digit) % self.grid.period(max(num_fraction, 0)),
            self.low_side or _compare(digit, self.grid.low, place),
            self.high_side or _compare(digit, self.grid.high or "", place),
            self.has_zero or (digit == 0 and place == 0),
        )

    def _num_left(self, num_whole: int) -> int:
        return num_whole - self.num_whole + self.grid.scale - max(self.num_fraction, 0)

    def _is_live(self) -> bool:
        """Say whether more digits, or none, can make it a number of the grid."""
        is_growing = self.num_fraction < 0 and not self.has_zero
        longest = self.grid.max_whole if is_growing else self.num_whole
        return any(map(self._has_number, range(longest, self.num_whole - 1, -1)))

    def _has_number(self, num_whole: int) -> bool:
        """Say whether there is one that has so many digits before the point."""
        rests = self._rests(num_whole)
        if rests is None:
            return False
        start = self.remainder * 10 ** self._num_left(num_whole)
        low, high = start + rests[0], start + rests[1]
        return bool(high - high % self.grid.size >= low)

    def _rests(self, num_whole: int) -> tuple[int, int] | None:
        """Give the least and the greatest number that the digits to come can be."""
        grid, num_left = self.grid, self._num_left(num_whole)
        least, greatest = 0, 10**num_left - 1
        length = num_whole + grid.scale
        if length < len(grid.low) or (length == len(grid.low) and self.low_side < 0):
            return None
        if length == len(grid.low) and self.low_side == 0:
            least = int(grid.low[length - num_left :] or 0)
        if grid.high is not None:
            if length > len(grid.high) or (length == len(grid.high) and self.high_side > 0):
                return None
            if length == len(grid.high) and self.high_side == 0:
                greatest = int(grid.high[length - num_left :] or 0)
        return (least, greatest) if least <= greatest else None


def _step(value: Decimal) -> Step:
    if value <= 0:
        raise RequestError("bad_grammar", f"multipleOf is {value}: it must be above zero")
    if max(abs(value.adjusted()), -exponent(value)) > MAX_STEP_DIGITS:
        message = f"multipleOf is {value}: it has more than {MAX_STEP_DIGITS} digits"
        raise RequestError("bad_grammar", message)
    size, power = coefficient(value), exponent(value)
    return Step(size * 10 ** max(power, 0), max(-power, 0))


def _scaled_up(span: Span, scale: int) -> tuple[int, int | None]:
    """Give the least and the greatest integer that, over 10**scale, is in the span."""
    low, is_exact = _times(span.low, scale)
    least = low + (span.is_low_exclusive or not is_exact)
    if span.high is None:
        return least, None
    high, is_exact = _times(span.high, scale)
    return least, high - (span.is_high_exclusive and is_exact)


def _times(value: Decimal, scale: int) -> tuple[int, bool]:
    """Give value * 10**scale, rounded down, and whether it is an integer."""
    power = exponent(value) + scale
    if power >= 0:
        return coefficient(value) * 10**power, True
    whole, rest = divmod(coefficient(value), 10**-power)
    return whole, not rest


def _compare(digit: int, bound: str, place: int) -> int:
    if place >= len(bound):
        return 0
    other = int(bound[place])
    return (digit > other) - (digit < other)
