"""The compiled sampler draws the very tokens of its definition, and scores as it does."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.native import Library
from plait.kernels.sampling import (
    DEAD_END,
    NOT_FINITE,
    POINTS,
    DrawRow,
    Floats,
    Words,
    native,
    reference,
)
from plait.kernels.sampling.reference import OCTAVE_BITS, WEIGHT_BITS, weigh

SIZES = (1, 2, 31, 32, 33, 500, 3001, 49_152)
SETTINGS = [  # temperature, top_k, top_p, min_p
    (0.0, 0, 1.0, 0.0),
    (1.0, 0, 1.0, 0.0),
    (0.7, 1, 1.0, 0.0),
    (1.3, 5, 1.0, 0.0),
    (1.0, 0, 0.9, 0.0),
    (1.0, 50, 0.5, 0.0),
    (1.0, 0, 1e-9, 0.0),
    (1.0, 0, 1 - 2.0**-53, 0.0),
    (2.0, 7, 0.8, 0.1),
    (1e30, 3, 1.0, 0.0),
    (1e30, 0, 0.4, 0.0),
    (1e-5, 0, 0.99, 1.0),
    (1.0, 10**9, 1.0, 0.3),
]


def words(bits: np.ndarray) -> Words:
    padded = np.zeros(-(-len(bits) // 32) * 32, np.bool_)
    padded[: len(bits)] = bits
    return np.packbits(padded, bitorder="little").view("<i4").astype(np.int32)


def some_rows(width: int, rng: np.random.Generator) -> list[DrawRow]:
    """Give every setting with masks of many densities, one of them shorter than the rows."""
    masks: list[Words | None] = [None]
    masks += [words(rng.random(width) < density) for density in (0.0, 0.02, 0.5, 0.999)]
    masks.append(words(rng.random(max(1, width // 2)) < 0.5))
    masks.append(words(rng.random(width + 100) < 0.5))
    known = [words(np.ones(width)), words(rng.random(width) < 0.9)]
    points = (0, 1, POINTS // 2, POINTS - 1, *rng.integers(0, POINTS, 3).tolist())
    return [
        DrawRow(known[i % 2], mask, *setting, point=points[i % len(points)])
        for i, (setting, mask) in enumerate(product(SETTINGS, masks))
    ]


def some_logits(num_rows: int, width: int, rng: np.random.Generator, kind: str) -> Floats:
    logits = rng.normal(0, 3, (num_rows, width + 3)).astype(np.float32)
    match kind:
        case "ties":
            logits = logits.round() * np.float32(0.5)
        case "even":
            logits[:] = -7.25
        case "zeros":
            logits = np.where(logits > 0, np.float32(0.0), np.float32(-0.0))
        case "wild":
            logits *= rng.choice([1e-30, 1.0, 1e37], logits.shape).astype(np.float32)
            logits[rng.random(logits.shape) < 0.3] = -np.inf
    return logits[:, :width]  # a slice of wider rows


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("kind", ["plain", "ties", "even", "zeros", "wild"])
def test_draws_are_as_defined(library: Library, width: int, kind: str) -> None:
    rng = np.random.default_rng(width)
    rows = some_rows(width, rng)
    logits = some_logits(len(rows), width, rng, kind)
    kept = logits.copy()
    assert native.draw(library, logits, rows) == reference.draw(logits, rows)
    assert np.array_equal(logits, kept)


@given(
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=80),
    st.sampled_from([0.0, 1e-5, 0.3, 1.0, 17.0, 1e30]),
    st.integers(0, 90),
    st.floats(0.0, 1.0, exclude_min=True),
    st.floats(0.0, 1.0),
    st.integers(0, POINTS - 1),
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=4) | st.none(),
)
@settings(max_examples=500, deadline=None)
def test_any_row_is_drawn_as_defined(
    values: list[float],
    temperature: float,
    top_k: int,
    top_p: float,
    min_p: float,
    point: int,
    mask: list[int] | None,
) -> None:
    from plait.kernels.native import load_library

    library = load_library()
    if library is None:
        pytest.skip("plait was installed without a C++ compiler")
    allowed = None if mask is None else np.array(mask, np.int32)
    known = words(np.ones(len(values)))
    row = DrawRow(known, allowed, temperature, top_k, top_p, min_p, point)
    logits = np.array([values], np.float32)
    assert native.draw(library, logits, [row]) == reference.draw(logits, [row])


@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_a_poisoned_row_is_told_and_the_others_drawn(library: Library, poison: float) -> None:
    rng = np.random.default_rng(0)
    logits = some_logits(7, 500, rng, "plain")
    rows = [DrawRow(words(np.ones(500)), temperature=1.0, point=i * POINTS // 7) for i in range(7)]
    whole = native.draw(library, logits, rows)
    logits[3, 499] = poison
    logits[5] = -np.inf
    found = native.draw(library, logits, rows)
    assert found == reference.draw(logits, rows)
    assert [found[3], found[5]] == [NOT_FINITE, NOT_FINITE]
    assert [found[i] for i in (0, 1, 2, 4, 6)] == [whole[i] for i in (0, 1, 2, 4, 6)]


def test_a_row_of_which_nothing_may_come_is_a_dead_end(library: Library) -> None:
    known, none = words(np.ones(40)), words(np.zeros(40))
    first = words(np.arange(40) < 1)
    logits = np.zeros((4, 40), np.float32)
    logits[2:, 0] = -np.inf
    masks = [none, known, first, first]
    rows = [DrawRow(known, mask, float(i % 2)) for i, mask in enumerate(masks)]
    found = native.draw(library, logits, rows)
    assert found == reference.draw(logits, rows)
    assert [token == DEAD_END for token in found] == [True, False, True, True]


def test_weights_are_powers_of_e_and_halve_exactly() -> None:
    steps = np.arange(0, 44 << OCTAVE_BITS, 9_973, dtype=np.int64)
    wanted = 2.0 ** (WEIGHT_BITS - steps / 2.0**OCTAVE_BITS)
    error = np.abs(weigh(steps) - wanted)
    assert (error <= 1 + wanted * 6e-9).all()
    octaves = np.arange(45, dtype=np.int64)
    assert weigh(octaves << OCTAVE_BITS).tolist() == [2**n for n in range(WEIGHT_BITS, -1, -1)]


def test_the_largest_vocabulary_does_not_overflow(library: Library) -> None:
    width = 2**19 - 1
    logits = np.zeros((2, width), np.float32)
    known = words(np.ones(width))
    rows = [DrawRow(known, None, 1.0, 0, p, 0.0, POINTS - 1) for p in (1.0, 0.5)]
    assert native.draw(library, logits, rows) == [width - 1, width // 2]
    assert reference.draw(logits, rows) == [width - 1, width // 2]


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("kind", ["plain", "even", "wild"])
def test_scores_are_as_defined(library: Library, width: int, kind: str) -> None:
    rng = np.random.default_rng(width)
    logits = some_logits(9, width, rng, kind)
    logits[4, width // 2] = math.nan
    logits[6] = -np.inf
    ids = [rng.integers(0, width, count).tolist() for count in (1, 0, 3, 1, 2, 1, 2, 40, 1)]
    found = native.logprobs(library, logits, ids)
    wanted = reference.logprobs(logits, ids)
    for row, expected in zip(found, wanted, strict=True):
        assert row == pytest.approx(expected, abs=1e-6, rel=1e-12, nan_ok=True)  # fp32's e^x
    assert all(map(math.isnan, found[4]))


@pytest.mark.parametrize("width", SIZES)
def test_a_score_is_the_same_whatever_else_is_asked_of_its_row(
    library: Library, width: int
) -> None:
    rng = np.random.default_rng(width)
    logits = some_logits(3, width, rng, "plain")
    ids = [rng.integers(0, width, 7).tolist() for _ in range(3)]
    for score in (partial(native.logprobs, library), reference.logprobs):
        together = score(logits, ids)
        for i, token_id in enumerate(ids[1]):
            assert score(logits[1:2], [[token_id]]) == [[together[1][i]]]


def test_no_rows_give_nothing(library: Library) -> None:
    nothing = np.zeros((0, 8), np.float32)
    assert native.draw(library, nothing, []) == []
    assert native.logprobs(library, nothing, []) == []
