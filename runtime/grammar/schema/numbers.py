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

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from ..language import Language
from ..languages import Languages
from .multiples import Step, common_step, exponent, is_multiple, multiples_language
from .spans import MAX_ASKED, MAX_DIGITS, MAX_EXPONENT, MAX_FRACTION, Span, Spans

ZERO, ONE = Decimal(0), Decimal(1)
ALL_FRACTION = 2 * MAX_ASKED  # more digits after the point than any text here has
LIMITS = f"at most {MAX_DIGITS} digits, or an exponent from -{MAX_EXPONENT} to {MAX_EXPONENT}"


@dataclass(frozen=True, slots=True)
class NumberBounds:
    """What is known of a number. `a & b` is what both say; it may allow no number at all.

    `multiples` are what it is a multiple of and `non_multiples` what it is not (1: no
    integer), all above zero; `excluded` is what it is not equal to.
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
        low = max(self._low, other._low)
        negated_high = max(self._negated_high, other._negated_high)
        return NumberBounds(
            self.is_integer or other.is_integer,
            low[0] if low[0].is_finite() else None,
            low[1],
            negated_high[0].copy_negate() if negated_high[0].is_finite() else None,
            negated_high[1],
            self.multiples | other.multiples,
            self.non_multiples | other.non_multiples,
            self.excluded | other.excluded,
        )

    def excluding(self, values: Iterable[Decimal]) -> NumberBounds:
        """Give the bounds of the same numbers without `values`."""
        return replace(self, excluded=self.excluded.union(values))

    def admits(self, value: Decimal) -> bool:
        """Say whether a number keeps to the bounds, exactly."""
        multiples = {ONE, *self.multiples} if self.is_integer else self.multiples
        return (
            (value, False) >= self._low
            and (value.copy_negate(), False) >= self._negated_high
            and value not in self.excluded
            and all(is_multiple(value, step) for step in multiples)
            and not any(is_multiple(value, step) for step in self.non_multiples)
        )

    def has_values(self) -> bool:
        """Say whether surely some number keeps to the bounds, written here or not."""
        sides = [side for side in (self.minimum, self.maximum) if side is not None]
        near = [value for side in sides for value in (side, side + 1, side - 1, side * 2)]
        return not sides or any(map(self.admits, near))

    def positive(self) -> Span | None:
        """Give the numbers from zero on; None if there are none."""
        if self.maximum is not None and self.maximum < 0:
            return None
        span = Span(ZERO, False, self.maximum, self.is_maximum_exclusive)
        if self.minimum is None or self.minimum < 0:
            return span
        return replace(
            span, low=self.minimum.copy_abs(), is_low_exclusive=self.is_minimum_exclusive
        )

    def negative(self) -> Span | None:
        """Give the sizes of the numbers up to zero; None if only zero is among them."""
        if self.minimum is not None and self.minimum >= 0:
            return None
        return replace(
            self,
            minimum=None if self.maximum is None else self.maximum.copy_negate(),
            is_minimum_exclusive=self.is_maximum_exclusive,
            maximum=None if self.minimum is None else self.minimum.copy_negate(),
            is_maximum_exclusive=self.is_minimum_exclusive,
        ).positive()

    @property
    def _low(self) -> tuple[Decimal, bool]:
        """The lower bound; the greater it is, the less it lets through."""
        if self.minimum is None:
            return Decimal("-Infinity"), False
        return self.minimum, self.is_minimum_exclusive

    @property
    def _negated_high(self) -> tuple[Decimal, bool]:
        if self.maximum is None:
            return Decimal("-Infinity"), False
        return self.maximum.copy_negate(), self.is_maximum_exclusive


def number_language(bounds: NumberBounds, languages: Languages) -> Language:
    """Give the texts of the numbers that keep to `bounds`; see above for which.

    Raises: RequestError (bad_grammar) for a multiple that is not above zero, or too long.
    """
    builder = _Builder(bounds, languages)
    signed: list[Language] = []
    for sign, span in (("", bounds.positive()), ("-", bounds.negative())):
        if span is not None:
            signed.append(languages.concat(languages.word(sign), builder.sizes(span)))
    return languages.both((languages.union(signed), builder.not_excluded()))


def equal_to(value: Decimal, languages: Languages, is_every_spelling: bool = False) -> Language:
    """Give the text that json.dumps writes for `value`, or all spellings that are written here.

    An integer without fraction and exponent (1, not 1.0 nor 1e0) is written plainly, any
    other number as a float.
    """
    if not is_every_spelling:
        return languages.word(_spell(value))
    return _spellings(value, MAX_FRACTION, languages)


class _Builder:
    """Makes the parts of one number's language."""

    def __init__(self, bounds: NumberBounds, languages: Languages) -> None:
        self._bounds = bounds
        self._languages = languages
        self._spans = Spans(languages)
        multiples = {ONE, *bounds.multiples} if bounds.is_integer else bounds.multiples
        self._step = common_step(multiples) if multiples else None

    def sizes(self, span: Span) -> Language:
        """Give the texts without a sign."""
        bounds, languages = self._bounds, self._languages
        if bounds.is_integer and self._step == Step(1, 0):
            found = self._spans.plain(span, 0)
        elif self._step is not None:
            scale = 0 if bounds.is_integer else None
            found = multiples_language(self._step, span, languages, scale)
        else:
            found = self._spans.plain(span, span.max_fraction())
            if not bounds.non_multiples:
                scientific = self._spans.scientific(span, MAX_FRACTION)
                return languages.union((found, scientific))
        return languages.both((found, *map(languages.negate, self._forbidden(span))))

    def not_excluded(self) -> Language:
        """Give all texts but those of the numbers that are left out."""
        bounds, languages = self._bounds, self._languages
        max_fraction = 0 if bounds.is_integer else ALL_FRACTION
        values = [v for v in bounds.excluded if replace(bounds, excluded=frozenset()).admits(v)]
        found = languages.union(_spellings(value, max_fraction, languages) for value in values)
        return languages.negate(found)

    def _forbidden(self, span: Span) -> list[Language]:
        """Give the texts of the multiples that are left out, as long as any text can be."""
        scale = 0 if self._bounds.is_integer else ALL_FRACTION
        languages = self._languages
        steps = [common_step((value,)) for value in self._bounds.non_multiples]
        if self._step is not None and any(step.divides(self._step) for step in steps):
            return [languages.anything]
        return [multiples_language(step, span, languages, scale) for step in steps]


def _spellings(value: Decimal, max_fraction: int, languages: Languages) -> Language:
    spans, size = Spans(languages), value.copy_abs()
    span = Span(size, False, size, False)
    texts = languages.union((spans.plain(span, max_fraction), spans.scientific(span, max_fraction)))
    minus = languages.word("-")
    sign = languages.repeat(minus, 0, 1) if not value else minus if value < 0 else languages.empty
    return languages.concat(sign, texts)


def _spell(value: Decimal) -> str:
    if exponent(value) == 0:
        return str(int(value))
    nearest = float(value)
    return repr(nearest) if Decimal(repr(nearest)) == value else str(value)
