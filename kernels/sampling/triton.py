"""Draw tokens by Triton without a sort, one row a program. Needs the package `triton`.

The distance from the peak up to which top-k keeps tokens, and the least weight that top-p keeps,
are found by halving the bits of a float: numbers of one sign lie in the order of their bits. 31
looks at the row find a threshold exactly. After: the sampling without sorting of FlashInfer, Ye et
al. 2024.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .gpu import SamplingRows

BLOCK = tl.constexpr(4096)  # tokens at a time
ONE_BITS = tl.constexpr(0x3F800000)  # of 1.0, the largest weight
LARGEST_BITS = tl.constexpr(0x7F7FFFFF)  # of the largest finite number


def draw(logits: Tensor, rows: SamplingRows) -> Tensor:
    """Draw a token of each row of `logits` [r, width] fp32; int64 [r], -1 where none may come.

    Sums are fp32: a token at the very edge of top-p may fall on its other side.
    """
    assert logits.dtype == torch.float32
    assert logits.stride(1) == 1
    for column in (rows.temperature, rows.top_k, rows.top_p, rows.min_p, rows.point):
        assert column.is_contiguous()
    num_rows, width = logits.shape
    weights = torch.empty(num_rows, width, dtype=torch.float32, device=logits.device)
    out = torch.empty(num_rows, dtype=torch.int64, device=logits.device)
    if num_rows:
        _draw[(num_rows,)](
            logits,
            weights,
            rows.temperature,
            rows.top_k,
            rows.top_p,
            rows.min_p,
            rows.point,
            out,
            logits.stride(0),
            width,
            num_warps=8,
        )
    return out


@triton.jit  # type: ignore[untyped-decorator]
def _sum_from(weights: torch.Tensor, width: int, least: float) -> torch.Tensor:
    """Sum the weights of `least` or more."""
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, width, BLOCK):
        ids = start + tl.arange(0, BLOCK)
        weight = tl.load(weights + ids, mask=ids < width, other=0.0)
        total += tl.where(weight >= least, weight, 0.0)
    whole: torch.Tensor = tl.sum(total, 0)
    return whole


@triton.jit  # type: ignore[untyped-decorator]
def _keep(weights: torch.Tensor, width: int, least: float, room: int) -> None:
    """Set to zero what is under `least`, and of those equal to it all but the first `room`."""
    before = 0
    for start in range(0, width, BLOCK):
        ids = start + tl.arange(0, BLOCK)
        weight = tl.load(weights + ids, mask=ids < width, other=0.0)
        is_level = (weight == least) & (weight > 0.0)
        rank = before + tl.cumsum(is_level.to(tl.int32), 0)
        is_out = (weight < least) | (is_level & (rank > room))
        tl.store(weights + ids, tl.zeros([BLOCK], dtype=tl.float32), mask=is_out & (ids < width))
        before += tl.sum(is_level.to(tl.int32), 0)


@triton.jit  # type: ignore[untyped-decorator]
def _float_of(bits: int) -> float:
    return bits.to(tl.float32, bitcast=True)  # type: ignore[attr-defined, no-any-return]


@triton.jit  # type: ignore[untyped-decorator]
def _count_near(gaps: torch.Tensor, width: int, most: float) -> torch.Tensor:
    """Count the gaps of `most` or less."""
    count = tl.zeros([BLOCK], dtype=tl.int32)
    for start in range(0, width, BLOCK):
        ids = start + tl.arange(0, BLOCK)
        gap = tl.load(gaps + ids, mask=ids < width, other=float("inf"))
        count += (gap <= most).to(tl.int32)
    found: torch.Tensor = tl.sum(count, 0)
    return found


@triton.jit  # type: ignore[untyped-decorator]
def _keep_top_k(gaps: torch.Tensor, width: int, top_k: int) -> None:
    """Set all but the `top_k` smallest gaps to infinity; of equals the lowest ids stay."""
    low = tl.full([], -1, dtype=tl.int32)  # as a bound keeps too few
    high = tl.full([], LARGEST_BITS, dtype=tl.int32)  # keeps enough, or all that may come
    while high - low > 1:
        middle = low + (high - low) // 2
        if _count_near(gaps, width, _float_of(middle)) >= top_k:
            high = middle
        else:
            low = middle
    most = _float_of(high)
    room = top_k
    if high > 0:
        room = top_k - _count_near(gaps, width, _float_of(high - 1))
    before = 0
    for start in range(0, width, BLOCK):
        ids = start + tl.arange(0, BLOCK)
        gap = tl.load(gaps + ids, mask=ids < width, other=float("inf"))
        is_level = gap == most
        rank = before + tl.cumsum(is_level.to(tl.int32), 0)
        is_out = (gap > most) | (is_level & (rank > room))
        tl.store(
            gaps + ids, tl.full([BLOCK], float("inf"), tl.float32), mask=is_out & (ids < width)
        )
        before += tl.sum(is_level.to(tl.int32), 0)


@triton.jit  # type: ignore[untyped-decorator]
def _keep_top_p(weights: torch.Tensor, width: int, top_p: float) -> None:
    """Keep the heaviest until they hold `top_p` of the weight; of equals the lowest ids."""
    whole = _sum_from(weights, width, 0.0)
    wanted = whole * top_p
    low = tl.full([], 0, dtype=tl.int32)
    high = tl.full([], ONE_BITS + 1, dtype=tl.int32)
    while high - low > 1:
        middle = low + (high - low) // 2
        if _sum_from(weights, width, _float_of(middle)) > wanted:
            low = middle
        else:
            high = middle
    least = _float_of(low)
    heavier = _sum_from(weights, width, _float_of(low + 1))
    # The level is entered while what came before does not exceed the wanted weight.
    room = tl.floor((wanted - heavier) / tl.where(least > 0.0, least, 1.0)) + 1.0
    _keep(weights, width, least, tl.minimum(room, 1.0 * width).to(tl.int32))


@triton.jit  # type: ignore[untyped-decorator]
def _write_gaps(logits: torch.Tensor, gaps: torch.Tensor, width: int, peak: float) -> None:
    """Write how far under the peak each logit lies."""
    for start in range(0, width, BLOCK):
        ids = start + tl.arange(0, BLOCK)
        values = tl.load(logits + ids, mask=ids < width, other=float("-inf"))
        tl.store(gaps + ids, peak - values, mask=ids < width)


@triton.jit  # type: ignore[untyped-decorator]
def _write_weights(weights: torch.Tensor, width: int, temperature: float) -> None:
    """Turn gaps into weights, in place; the largest is 1."""
    for start in range(0, width, BLOCK):
        ids = start + tl.arange(0, BLOCK)
        gap = tl.load(weights + ids, mask=ids < width, other=float("inf"))
        tl.store(weights + ids, tl.exp(-gap / temperature), mask=ids < width)


@triton.jit  # type: ignore[untyped-decorator]
def _draw(
    logits: torch.Tensor,
    weights: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    min_p: torch.Tensor,
    point: torch.Tensor,
    out: torch.Tensor,
    logits_stride: int,
    width: int,
) -> None:
    """Draw one row; `weights` is room to work in, a row for each."""
    row = tl.program_id(0).to(tl.int64)
    logits += row * logits_stride
    weights += row * width
    peaks = tl.full([BLOCK], float("-inf"), dtype=tl.float32)
    for start in range(0, width, BLOCK):
        ids = start + tl.arange(0, BLOCK)
        values = tl.load(logits + ids, mask=ids < width, other=float("-inf"))
        peaks = tl.maximum(peaks, values)
    peak = tl.max(peaks, 0)
    if peak == float("-inf"):
        tl.store(out + row, tl.full([], -1, dtype=tl.int64))
    else:
        _write_gaps(logits, weights, width, peak)
        tl.debug_barrier()
        wanted = tl.load(top_k + row)
        if (wanted > 0) & (wanted < width):
            _keep_top_k(weights, width, wanted)
            tl.debug_barrier()
        _write_weights(weights, width, tl.load(temperature + row))
        tl.debug_barrier()
        share = tl.load(top_p + row)
        if share < 1.0:
            _keep_top_p(weights, width, share)
            tl.debug_barrier()
        _pick(weights, out + row, width, tl.load(min_p + row), tl.load(point + row))


@triton.jit  # type: ignore[untyped-decorator]
def _pick(weights: torch.Tensor, out: torch.Tensor, width: int, min_p: float, point: float) -> None:
    """Write the id in which `point` of the weight of `min_p` or more falls."""
    whole = _sum_from(weights, width, min_p)
    wanted = point * whole
    before = 0.0
    found = tl.zeros([], dtype=tl.int32) + width
    last = tl.zeros([], dtype=tl.int32)
    for start in range(0, width, BLOCK):
        ids = start + tl.arange(0, BLOCK)
        weight = tl.load(weights + ids, mask=ids < width, other=0.0)
        is_kept = (weight >= min_p) & (weight > 0.0)
        weight = tl.where(is_kept, weight, 0.0)
        sums = before + tl.cumsum(weight, 0)
        found = tl.minimum(found, tl.min(tl.where(is_kept & (sums > wanted), ids, width), 0))
        last = tl.maximum(last, tl.max(tl.where(is_kept, ids, 0), 0))
        before += tl.sum(weight, 0)
    token = tl.where(found < width, found, last)  # rounding: the last that has weight
    tl.store(out, token.to(tl.int64))
