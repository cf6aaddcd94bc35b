"""The definition of drawing a token: mask, top-k, temperature, top-p, min-p, one uniform number.

Weights are whole numbers, 2^44 at the peak, so sums of them are exact in any order, and other
versions can draw the very same tokens. Logits are fp32, and so is the way to a weight's exponent;
from there on all is done in integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from .rows import DEAD_END, NOT_FINITE, POINTS, DrawRow, Floats

Ids: TypeAlias = npt.NDArray[np.int64]
Wide: TypeAlias = npt.NDArray[np.uint64]

WEIGHT_BITS: Final = 44
OCTAVE_BITS: Final = 25  # a weight halves every 2^25 steps under the peak
STEPS_PER_UNIT: Final = np.float32(np.log2(np.e)) * np.float32(2**OCTAVE_BITS)
MOST_STEPS: Final = np.float32(63 * 2**OCTAVE_BITS)
# 2^-x = 1 - x (c0 - x (c1 - ...)) for x in [0, 1), in units of 2^-31, to 6e-9.
_SERIES: Final = (1488522040, 515878639, 119168801, 20577648, 2743352, 236086)


def draw(logits: Floats, rows: Sequence[DrawRow]) -> list[int]:
    """Draw a token of each row of `logits` [r, width]; DEAD_END or NOT_FINITE where none can be.

    Ties go to the lowest id; top-p keeps the smallest set, heaviest first, that holds its share.
    """
    return [_draw_row(values, row) for values, row in zip(logits, rows, strict=True)]


def logprobs(logits: Floats, token_ids: Sequence[Sequence[int]]) -> list[list[float]]:
    """Give log P of each of token_ids[i] under row i of `logits`; NaN where that is not finite."""
    return [_logprobs(row, ids) for row, ids in zip(logits, token_ids, strict=True)]


def _logprobs(row: Floats, token_ids: Sequence[int]) -> list[float]:
    peak = row.max()
    if not np.isfinite(peak):
        return [np.nan] * len(token_ids)
    values = row.astype(np.float64) - peak
    rest = np.log(np.exp(values).sum())
    return [float(values[token_id] - rest) for token_id in token_ids]


def _draw_row(values: Floats, row: DrawRow) -> int:
    if not np.isfinite(values.max()):  # NaN is the largest
        return NOT_FINITE
    bits = np.unpackbits(row.allowed().astype("<i4").view(np.uint8), bitorder="little")
    ids = np.flatnonzero(bits[: len(values)])
    values = values[ids]
    if not len(ids) or values.max() == -np.inf:
        return DEAD_END
    if row.temperature == 0.0:
        return int(ids[values.argmax()])
    if 0 < row.top_k < len(ids):
        kept = np.sort(np.argsort(-values, kind="stable")[: row.top_k])
        ids, values = ids[kept], values[kept]
    steps = _steps(values, row.temperature)
    weights = weigh(steps)
    if row.top_p < 1.0:
        kept = _inside_top_p(steps, weights, row.top_p)
        ids, weights = ids[kept], weights[kept]
    weights[weights < row.min_p * 2**WEIGHT_BITS] = 0
    sums = weights.cumsum()
    target = row.point * int(sums[-1]) // POINTS
    return int(ids[np.searchsorted(sums, np.uint64(target), side="right")])


def _steps(values: Floats, temperature: float) -> Ids:
    """Give how far each value is under the largest."""
    with np.errstate(over="ignore"):  # infinity is right there
        steps = (values.max() - values) / np.float32(temperature) * STEPS_PER_UNIT
    whole: Ids = np.minimum(steps, MOST_STEPS).astype(np.int64)
    return whole


def weigh(steps: Ids) -> Wide:
    """Give 2^(44 - steps / 2^25), cut to whole numbers."""
    octaves, low = np.divmod(steps.astype(np.uint64), np.uint64(2**OCTAVE_BITS))
    x = low << np.uint64(32 - OCTAVE_BITS)
    y = np.zeros_like(x)
    for constant in (*reversed(_SERIES), 2**31):
        y = np.uint64(constant) - (x * y >> np.uint64(32))
    weights: Wide = y << np.uint64(WEIGHT_BITS - 31) >> octaves
    return weights


def _inside_top_p(steps: Ids, weights: Wide, top_p: float) -> Ids:
    order = np.argsort(steps, kind="stable")
    sums = weights[order].cumsum()
    total = int(sums[-1])
    wanted = min(max(int(top_p * float(total)), 1), total)
    kept: Ids = np.sort(order[: np.searchsorted(sums, np.uint64(wanted)) + 1])
    return kept
