"""Number languages hold exactly the JSON texts whose value keeps to the bounds."""

from __future__ import annotations

import json
import math
import random
import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.errors import RequestError
from plait.runtime.grammar.language import Language
from plait.runtime.grammar.schema.numbers import NumberBounds, equal_to, number_language

from .words import Words

WORDS = Words()
FORM = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.(\d+))?|[1-9](?:\.\d+)?([eE])[+-]?\d{1,3})")


def language(bounds: NumberBounds) -> Language:
    return number_language(bounds, WORDS.languages)


def accepted(bounds: NumberBounds, texts: str) -> str:
    found = language(bounds)
    return " ".join(text for text in texts.split() if WORDS.holds(found, text))


def bounds_of(
    low: str | None = None, high: str | None = None, is_integer: bool = False, *multiples: str
) -> NumberBounds:
    return NumberBounds(
        is_integer,
        None if low is None else Decimal(low),
        False,
        None if high is None else Decimal(high),
        multiples=frozenset(map(Decimal, multiples)),
    )


def keeps(bounds: NumberBounds, text: str) -> bool:
    """Judge a text by the rules, slowly: its form first, then its value as a fraction."""
    form = FORM.fullmatch(text)
    if form is None or (text[0] == "-" and bounds.minimum is not None and bounds.minimum >= 0):
        return False
    fraction, letter = form[1] or "", form[2]
    if bounds.is_integer and (fraction or letter):
        return False
    if letter and (bounds.multiples or bounds.non_multiples):
        return False
    if bounds.multiples and len(fraction) > max(2, scale(bounds)):
        return False
    return has_value(bounds, Fraction(text))


def scale(bounds: NumberBounds) -> int:
    step = Fraction(math.lcm(*(Fraction(m).numerator for m in bounds.multiples)))
    for multiple in bounds.multiples:  # the lcm of fractions, by search over small ones
        while any((step / Fraction(m)).denominator > 1 for m in bounds.multiples):
            step += Fraction(multiple)
    return next(n for n in range(40) if (step * 10**n).denominator == 1)


def has_value(bounds: NumberBounds, value: Fraction) -> bool:
    low = None if bounds.minimum is None else Fraction(bounds.minimum)
    high = None if bounds.maximum is None else Fraction(bounds.maximum)
    return (
        (low is None or low < value or (low == value and not bounds.is_minimum_exclusive))
        and (high is None or value < high or (high == value and not bounds.is_maximum_exclusive))
        and all((value / Fraction(step)).denominator == 1 for step in bounds.multiples)
        and not any((value / Fraction(step)).denominator == 1 for step in bounds.non_multiples)
        and value not in map(Fraction, bounds.excluded)
        and (not bounds.is_integer or value.denominator == 1)
    )


SIZES = st.integers(0, 12000).flatmap(
    lambda n: st.sampled_from([Decimal(n).scaleb(-k) for k in range(6)])
)
DECIMALS = st.builds(lambda size, is_low: -size if is_low else size, SIZES, st.booleans())
POWERS = st.builds(lambda d, k: d.scaleb(k), DECIMALS, st.integers(-12, 12))
STEPS = st.sampled_from(["1", "2", "3", "0.5", "0.25", "1.5", "0.01", "0.7", "10", "1e2"])
ANY_BOUNDS = st.builds(
    NumberBounds,
    st.booleans(),
    st.none() | DECIMALS | POWERS,
    st.booleans(),
    st.none() | DECIMALS | POWERS,
    st.booleans(),
    excluded=st.frozensets(DECIMALS, max_size=2),
)
FEW = st.builds(lambda n, k: Decimal(n).scaleb(-k), st.integers(-40, 40), st.integers(0, 1))
STEP_BOUNDS = st.builds(
    NumberBounds,
    st.booleans(),
    st.none() | FEW,
    st.booleans(),
    st.none() | FEW,
    st.booleans(),
    st.frozensets(STEPS.map(Decimal), min_size=1, max_size=2),
    st.frozensets(STEPS.map(Decimal), max_size=1),
    st.frozensets(FEW, max_size=1),
)


def spellings(value: Decimal) -> list[str]:
    """Write a value in some ways; also numbers next to it, and what is no JSON."""
    plain, scaled = f"{value:f}", f"{value:e}"
    texts = [
        plain,
        f"{plain}.0",
        f"{plain}0",
        f"{plain}.00",
        f"{plain}1",
        f"{plain}.01",
        f"-{plain}",
    ]
    texts += [scaled, scaled.replace("e", "E"), scaled.replace("e+", "e0"), f"{scaled}0"]
    texts += [plain[:-1], f"0{plain}", f"{plain}.", f"+{plain}", scaled.replace("e", "00e")]
    return texts


@settings(deadline=None, max_examples=100)
@given(ANY_BOUNDS, st.lists(DECIMALS | POWERS, max_size=6))
def test_a_text_is_held_exactly_if_its_value_keeps_to_the_bounds(
    bounds: NumberBounds, values: list[Decimal]
) -> None:
    found = language(bounds)
    known = [
        v for v in (bounds.minimum, bounds.maximum, *bounds.excluded, *values) if v is not None
    ]
    for text in (text for value in known for text in spellings(value)):
        assert WORDS.holds(found, text) == keeps(bounds, text), text


@settings(deadline=None, max_examples=100)
@given(STEP_BOUNDS, st.lists(FEW, min_size=3, max_size=9))
def test_multiples_are_exact(bounds: NumberBounds, values: list[Decimal]) -> None:
    found = language(bounds)
    known = [
        v for v in (bounds.minimum, bounds.maximum, *bounds.excluded, *values) if v is not None
    ]
    for text in (text for value in known for text in spellings(value)):
        assert WORDS.holds(found, text) == keeps(bounds, text), text


@settings(deadline=None, max_examples=40)
@given(ANY_BOUNDS | STEP_BOUNDS, st.integers())
def test_every_text_is_json_and_keeps_to_the_bounds(bounds: NumberBounds, seed: int) -> None:
    found = language(bounds)
    if not WORDS.is_live(found):
        return
    for p_stop in (0.02, 0.3, 1.0):
        text = WORDS.sample(found, random.Random(seed), p_stop)
        value = json.loads(text)
        assert math.isfinite(value)
        assert isinstance(value, int) or not bounds.is_integer
        assert has_value(bounds, Fraction(text)), text
        assert bounds.admits(Decimal(text))


@settings(deadline=None, max_examples=100)
@given(ANY_BOUNDS | STEP_BOUNDS, st.lists(DECIMALS | POWERS, min_size=1, max_size=5))
def test_admits_says_what_the_values_say(bounds: NumberBounds, values: list[Decimal]) -> None:
    for value in values:
        assert bounds.admits(value) == has_value(bounds, Fraction(value))


@settings(deadline=None, max_examples=100)
@given(ANY_BOUNDS, ANY_BOUNDS | STEP_BOUNDS, st.lists(DECIMALS | POWERS, max_size=5))
def test_bounds_joined_hold_where_both_do(
    a: NumberBounds, b: NumberBounds, values: list[Decimal]
) -> None:
    for value in [
        v for v in (a.minimum, a.maximum, b.minimum, b.maximum, *values) if v is not None
    ]:
        assert (a & b).admits(value) == (a.admits(value) and b.admits(value))


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-9e307, max_value=9e307))
def test_what_json_writes_for_a_float_is_held(value: float) -> None:
    if value == 0 or abs(value) > 1e-307:
        assert WORDS.holds(language(NumberBounds()), json.dumps(value))


@given(st.integers(-(10**20) + 1, 10**20 - 1))
def test_what_json_writes_for_an_integer_is_held(value: int) -> None:
    assert WORDS.holds(language(NumberBounds(is_integer=True)), json.dumps(value))


@pytest.mark.parametrize(
    ("bounds", "texts", "expected"),
    [
        (bounds_of(), "0 -0 00 01 1. .5 1e5 1E-05 12e5 1e308 +1 -1.50", "0 -0 1e5 1E-05 -1.50"),
        (bounds_of("0"), "0 -0 5 -1 0.0 1e-300", "0 5 0.0 1e-300"),
        (bounds_of("1", "100", True), "0 1 9 99 100 101 1.0 1e2", "1 9 99 100"),
        (bounds_of("-3", "5", True), "-4 -3 -0 0 5 6 -30", "-3 -0 0 5"),
        (bounds_of(None, "-0.5"), "0 -0 -0.5 -0.49 -5e-1 -4.9e-1 -1e300", "-0.5 -5e-1 -1e300"),
        (bounds_of("0.1", "0.25"), "0.1 0.09 0.250 0.2501 2.5e-1 1e-2", "0.1 0.250 2.5e-1"),
        (bounds_of(None, None, False, "0.01"), "0 0.01 0.010 1e2 -7.25 7.255", "0 0.01 -7.25"),
        (bounds_of("10", "20", True, "7"), "7 14 20 21 28 10", "14"),
        (bounds_of(None, None, True, "1.5"), "0 1 3 -6 4 1.5", "0 3 -6"),
        (bounds_of(None, None, False, "2.5"), "2.5 5 5.0 5.00 7.50 1", "2.5 5 5.0 5.00 7.50"),
        (bounds_of(None, None, True, "0.123456789"), "0 123456789 12345678", "0 123456789"),
        (bounds_of(None, None, False, "0.0001"), "0.0075 0.00751", "0.0075"),
        (bounds_of(None, None, True, "1e-8"), "12391239123 0.5", "12391239123"),
        (bounds_of(None, None, False, "1e-8"), "0.00000001 0.000000001 7", "0.00000001 7"),
        (bounds_of(None, "1.7976931348623157e308"), "1e307 5 -1e307", "1e307 5 -1e307"),
        (bounds_of(None, str(2**64 - 1), True), f"{2**64 - 1} {2**64}", f"{2**64 - 1}"),
        (bounds_of("1e25", None, True), f"{10**25} {10**25 - 1}", f"{10**25}"),
    ],
)  # fmt: skip
def test_known_bounds(bounds: NumberBounds, texts: str, expected: str) -> None:
    assert accepted(bounds, texts) == expected


def test_excluded_values_are_out_in_every_spelling() -> None:
    bounds = NumberBounds().excluding([Decimal("1"), Decimal("0"), Decimal("-250")])
    texts = "1 1.0 1.000 1e0 1.0E+00 1e-0 0 -0 0.0 -0.00 -250 -2.5e2 -2.50e+2 2 -1 1.01 1e1 250"
    assert accepted(bounds, texts) == "2 -1 1.01 1e1 250"


def test_bounds_past_all_texts_change_nothing() -> None:
    far, near = Decimal("1e4000000"), Decimal("1e-4000000")
    bounds = NumberBounds(minimum=far.copy_negate(), maximum=far).excluding([far, near])
    assert language(bounds) is language(NumberBounds())
    assert accepted(NumberBounds(minimum=near), "0 0.0 1e-307 0.001") == "1e-307 0.001"
    assert accepted(NumberBounds(minimum=Decimal(0), maximum=near), "0 0.0 1e-307") == "0 0.0"


def test_a_number_that_is_no_integer_has_a_fraction() -> None:
    bounds = NumberBounds(non_multiples=frozenset((Decimal(1),)))
    assert accepted(bounds, "1 1.0 1.5 -0.0 0.000000000000001 2.50") == "1.5 0.000000000000001 2.50"


@pytest.mark.parametrize(
    "bounds",
    [
        bounds_of("1", "0"),
        bounds_of("0.1", "0.9", True),
        bounds_of("1000000001", "1999999999", True, "1000000000"),
        bounds_of("1e400"),
        bounds_of("1e4000000"),
        bounds_of(None, "-1e4000000"),
        NumberBounds(minimum=Decimal(1), maximum=Decimal(1), is_maximum_exclusive=True),
        NumberBounds(multiples=frozenset((Decimal(6),)), non_multiples=frozenset((Decimal(3),))),
        NumberBounds(True, Decimal(0), False, Decimal(1)).excluding([Decimal(0), Decimal("1.0")]),
    ],
)
def test_bounds_without_a_number_are_dead(bounds: NumberBounds) -> None:
    assert not WORDS.is_live(language(bounds))


def test_a_big_step_needs_few_states() -> None:
    words = Words()
    found = number_language(bounds_of("123", None, True, "999999937"), words.languages)
    assert words.holds(found, str(999999937 * 12345))
    assert not words.holds(found, str(999999937 * 12345 + 1))
    assert len(words.languages) < 1000


@pytest.mark.parametrize("step", ["1", "2", "1.5", "0.25"])
def test_numbers_that_are_no_multiples_need_few_states(step: str) -> None:
    words = Words()
    bounds = NumberBounds(non_multiples=frozenset((Decimal(step),)))
    found = number_language(bounds, words.languages)
    assert words.holds(found, "99999999999999999999.123")
    assert not words.holds(found, "12.0000000000000000000")
    assert len(words.languages) < 5000


@pytest.mark.parametrize(
    ("source", "text"),
    [
        *(("0", "0"), ("1", "1"), ("1.0", "1.0"), ("-2.50", "-2.5")),
        *(("1E+16", "1e+16"), ("1E-7", "1e-07")),
    ],
)
def test_a_value_is_spelt_as_json_writes_it(source: str, text: str) -> None:
    found = equal_to(Decimal(source), WORDS.languages)
    assert WORDS.sample(found, random.Random(0)) == text
    every = equal_to(Decimal(source), WORDS.languages, is_every_spelling=True)
    assert WORDS.holds(every, text)
    assert not WORDS.holds(every, text + "1")


@pytest.mark.parametrize("step", ["0", "-1", "1e-2000"])
def test_a_step_that_is_no_step_is_refused(step: str) -> None:
    with pytest.raises(RequestError, match="multipleOf is "):
        language(bounds_of(None, None, False, step))
