"""JSON numbers as languages: bounds, multiples, and what a number must not be.

Written are (RFC 8259, so without zeros in front, a sign +, or a bare point):

- plain texts, -?(0|[1-9]d*)(.d+)?, with up to 20 digits before the point and up to 20
  after it, or up to 40 where a bound has so many;
- d.ddde+nn, the first digit from 1 to 9 and the exponent from -307 to 307: all that
  json.dumps writes. Any other exponent is left out (10e1, 0.5e3, 0e0), as are numbers from
  1e308 on: `json.loads` never gives an infinity.

An integer is written plainly, without point and exponent (1.0 and 1e3 are left out), and
multiples are without exponent. A minus sign is there only where some number below zero is
(`-0` goes with them). Values are compared as decimals, exactly: two texts that one double
stands for can be on both sides of a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from ..language import Language
from ..languages import Languages
from .spans import Span, Spans

ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class NumberBounds:
    """What is known of a number. `a & b` is what both say; it may allow no number at all.

    `multiples` are what it is a multiple of, `non_multiples` what it is not (1: no
    integer), `excluded` what it is not equal to. Those of the first two are above zero.
    """

    is_integer: bool = False
    minimum: Decimal | None = None
    is_minimum_exclusive: bool = False
    maximum: Decimal | None = None
    is_maximum_exclusive: bool = False
    multiples: frozenset[Decimal] = frozenset()
    non_multiples: frozenset[Decimal] = frozenset()
    excluded: frozenset[Decimal] = frozenset()

    def __and__(self, other: NumberBounds) -> NumberBounds:
        raise NotImplementedError

    def excluding(self, values: frozenset[Decimal]) -> NumberBounds:
        """Give the bounds of the same numbers, but for `values`."""
        raise NotImplementedError

    def admits(self, value: Decimal) -> bool:
        """Say whether a number of this value keeps to the bounds."""
        raise NotImplementedError


def number_language(bounds: NumberBounds, languages: Languages) -> Language:
    """Give the texts of the numbers that keep to `bounds`; see above for which."""
    raise NotImplementedError


def equal_to(value: Decimal, languages: Languages, is_every_spelling: bool = False) -> Language:
    """Give the text that json.dumps writes for `value`, or every spelling of it.

    1 is written 1, 1.0 is written 1.0: as its exponent says.
    """
    raise NotImplementedError
