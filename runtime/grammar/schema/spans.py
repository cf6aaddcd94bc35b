"""Numbers without a sign, as JSON writes them, between two bounds."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from ..language import Language
from ..languages import Languages
from .digits import Bound, Digits, Table

MAX_WHOLE = 20  # digits before the point, unless a bound has more
MAX_FRACTION = 20  # digits after the point, unless a bound has more
MAX_ASKED = 40  # digits, before or after, that a bound may ask for
MAX_EXPONENT = 307  # of d.ddde+nnn: each such text is a normal double
MAX_DIGITS = 308  # bounds from 1e309 on are infinite, those under 1e-308 next to zero


@dataclass(frozen=True, slots=True)
class Span:
    """The sizes from `low` (at least 0) to `high`; `high` None is without end."""

    low: Decimal = Decimal(0)
    is_low_exclusive: bool = False
    high: Decimal | None = None
    is_high_exclusive: bool = False

    @property
    def is_empty(self) -> bool:
        """True where no number is in it."""
        if self.high is None or self.low < self.high:
            return False
        return self.low > self.high or self.is_low_exclusive or self.is_high_exclusive

    def clipped(self) -> Span:
        """Give the span that holds the same texts, its bounds zero or of 1e-308 to 1e309."""
        low, high = self.low, self.high
        is_low_exclusive, is_high_exclusive = self.is_low_exclusive, self.is_high_exclusive
        if low and low.adjusted() < -MAX_DIGITS:
            low, is_low_exclusive = Decimal(0), True
        if low.adjusted() > MAX_DIGITS:
            low = Decimal(f"1e{MAX_DIGITS + 1}")
        if high and high.adjusted() < -MAX_DIGITS:
            high, is_high_exclusive = Decimal(0), False
        if high and high.adjusted() > MAX_DIGITS:
            high = None
        return Span(low, is_low_exclusive, high, is_high_exclusive)

    def max_whole(self) -> int:
        """Give how many digits may stand before the point."""
        high = 0 if self.high is None else min(num_whole(self.high), MAX_ASKED)
        low = num_whole(self.low) + 1 if self.low >= 1 else 0
        return min(max(MAX_WHOLE, high, low), MAX_DIGITS)

    def max_fraction(self) -> int:
        """Give how many digits may stand after the point."""
        asked = max(num_fraction(self.low), num_fraction(self.high or Decimal(0)))
        return max(MAX_FRACTION, min(asked, MAX_ASKED))


def num_whole(value: Decimal) -> int:
    """Give how many digits stand before the point of a size; zero has one."""
    return max(value.adjusted() + 1, 1) if value else 1


def num_fraction(value: Decimal) -> int:
    """Give how many digits stand after the point, zeros at the end left out."""
    return len(f"{value:f}".partition(".")[2].rstrip("0"))


class Spans:
    """Makes the languages of spans in one pool."""

    def __init__(self, languages: Languages) -> None:
        self._languages = languages
        self._digits = Digits(languages)

    def plain(self, span: Span, max_fraction: int) -> Language:
        """Give the texts without an exponent whose value is in `span`."""
        span = span.clipped()
        if span.is_empty:
            return self._languages.nothing
        first, last = num_whole(span.low), span.max_whole()
        lows: dict[int, Bound] = {}
        highs: dict[int, Bound] = {}
        if span.low or span.is_low_exclusive:
            lows[first] = _bound(span.low, span.is_low_exclusive)
        if span.high is not None and num_whole(span.high) <= last:
            last = num_whole(span.high)
            highs[last] = _bound(span.high, span.is_high_exclusive)
        options = [
            Table(self._digits, n, max_fraction, n > 1, lows.get(n), highs.get(n)).language()
            for n in {*lows, *highs}
            if n <= last
        ]
        options.append(self._lengths(first + len(lows), last - len(highs), max_fraction))
        return self._languages.union(options)

    def scientific(self, span: Span, max_fraction: int) -> Language:
        """Give the texts d.ddde+nn whose value is in `span`; the first digit is not zero."""
        span = span.clipped()
        if span.is_empty or span.high == 0:
            return self._languages.nothing
        low = high = None
        first, last = -MAX_EXPONENT - 1, MAX_EXPONENT + 1
        if span.low:
            first, low = span.low.adjusted(), _mantissa(span.low, span.is_low_exclusive)
        if span.high is not None:
            last, high = span.high.adjusted(), _mantissa(span.high, span.is_high_exclusive)
        if first == last:
            return self._scaled(low, high, (first, last), max_fraction)
        options = (
            self._scaled(low, None, (first, first), max_fraction),
            self._scaled(None, None, (first + 1, last - 1), max_fraction),
            self._scaled(None, high, (last, last), max_fraction),
        )
        return self._languages.union(options)

    def _scaled(
        self, low: Bound | None, high: Bound | None, exponents: tuple[int, int], max_fraction: int
    ) -> Language:
        """Give mantissas between two bounds, with an exponent from the first to the last."""
        first, last = max(exponents[0], -MAX_EXPONENT), min(exponents[1], MAX_EXPONENT)
        if first > last:
            return self._languages.nothing
        mantissa = Table(self._digits, 1, max_fraction, True, low, high).language()
        return self._languages.concat(mantissa, self._exponent(first, last))

    def _exponent(self, first: int, last: int) -> Language:
        languages = self._languages
        plus = languages.repeat(languages.word("+"), 0, 1)
        up = languages.concat(plus, self._padded(max(first, 0), last))
        down = languages.concat(languages.word("-"), self._padded(max(-last, 0), -first))
        letter = languages.union((languages.word("e"), languages.word("E")))
        return languages.concat(letter, languages.union((up, down)))

    def _padded(self, first: int, last: int) -> Language:
        """Give the integers from `first` to `last`, with up to three digits."""
        options: list[Language] = []
        for width in (1, 2, 3):
            high = min(last, 10**width - 1)
            if first <= high:
                low = Bound(f"{first:0{width}}", False) if first else None
                top = Bound(f"{high:0{width}}", False) if high < 10**width - 1 else None
                options.append(Table(self._digits, width, 0, False, low, top).language())
        return self._languages.union(options)

    def _lengths(self, first: int, last: int, max_fraction: int) -> Language:
        """Give all numbers that have `first` to `last` digits before the point."""
        if first > last:
            return self._languages.nothing
        digits, languages = self._digits, self._languages
        fraction = digits.fraction(digits.any, max_fraction)
        more = digits.some(digits.any, first - 1, last - 1)
        longer = languages.sequence((digits.between(1, 9), more, fraction))
        if first > 1:
            return longer
        return languages.union((longer, languages.concat(digits.zero, fraction)))


def _bound(value: Decimal, is_exclusive: bool) -> Bound:
    return Bound(f"{value:f}".replace(".", ""), is_exclusive)


def _mantissa(value: Decimal, is_exclusive: bool) -> Bound:
    return Bound("".join(map(str, value.as_tuple().digits)).lstrip("0"), is_exclusive)
