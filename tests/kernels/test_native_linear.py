"""Packed products in C++ equal their definition, whatever the processor and the company."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from plait.kernels.native.library import Library
from plait.kernels.native.packed import Bytes, Packed, linear, pack
from plait.runtime.load.quants import dequantize

Floats: TypeAlias = npt.NDArray[np.float32]
Doubles: TypeAlias = npt.NDArray[np.float64]

F32, Q4_0, Q4_1, Q8_0, BF16 = 0, 2, 3, 8, 30
SIZES = [(1, 32), (16, 64), (50, 96), (160, 480)]


def raw_rows(number_format: int, rows: int, cols: int) -> Bytes:
    """Make random weights in a number format, [rows, bytes of a row]."""
    rng = np.random.default_rng(rows + cols)
    if number_format in (F32, BF16):
        values = rng.normal(size=(rows, cols)).astype(np.float32)
        if number_format == F32:
            return values.view(np.uint8)
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    num_blocks = rows * cols // 32
    # Denormal halves too: they are scaled by hand where the processor has no instruction.
    scales = rng.normal(size=(num_blocks, 2)) * rng.choice([1e-2, 1e-6], size=(num_blocks, 1))
    halves = scales.astype(np.float16).view(np.uint8)
    num_bytes = 32 if number_format == Q8_0 else 16
    numbers = rng.integers(0, 256, (num_blocks, num_bytes), dtype=np.uint8)
    blocks = np.concatenate((halves if number_format == Q4_1 else halves[:, :2], numbers), axis=1)
    return blocks.reshape(rows, -1)


def activations(num_rows: int, cols: int) -> Floats:
    return np.random.default_rng(7).normal(size=(80, cols)).astype(np.float32)[:num_rows]


def shortened(x: Floats) -> Doubles:
    """Round as the kernels do: 8 bits, a scale for each 32 numbers."""
    blocks = x.reshape(len(x), -1, 32)
    scales = np.abs(blocks).max(-1, keepdims=True) / np.float32(127)
    inverse = np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0)
    rounded: Doubles = np.rint(blocks * inverse) * scales.astype(np.float64)
    return rounded.reshape(x.shape)


def relative_rms(found: Floats, wanted: Doubles) -> float:
    return float(np.sqrt(((found - wanted) ** 2).mean() / (wanted**2).mean()))


@pytest.mark.parametrize("number_format", [F32, Q4_0, Q4_1, Q8_0, BF16])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("is_exact", [True, False])
def test_products_are_as_defined(
    library: Library, number_format: int, sizes: tuple[int, int], is_exact: bool
) -> None:
    raw = raw_rows(number_format, *sizes)
    bias = np.linspace(-1, 1, sizes[0], dtype=np.float32)
    weight = pack(library, number_format, raw, sizes[1], bias)
    plain = dequantize(raw.reshape(-1), number_format, sizes).astype(np.float64)
    for num_rows in (1, 2, 3, 7, 16, 17, 63):
        x = activations(num_rows, sizes[1])
        is_short = not is_exact and number_format in (Q4_0, Q4_1, Q8_0)
        wanted = (shortened(x) if is_short else x.astype(np.float64)) @ plain.T + bias
        found = linear(library, x, weight, is_exact=is_exact)
        assert relative_rms(found, wanted) < 2e-6  # fp32 sums of up to 480 terms


@pytest.mark.parametrize("number_format", [F32, Q4_1, Q8_0, BF16])
@pytest.mark.parametrize("is_exact", [True, False])
def test_company_changes_no_bit(library: Library, number_format: int, is_exact: bool) -> None:
    weight = pack(library, number_format, raw_rows(number_format, 48, 96), 96)
    x = activations(67, 96)
    together = linear(library, x, weight, is_exact=is_exact)
    for row in (0, 15, 16, 31, 65, 66):
        alone = linear(library, x[row : row + 1], weight, is_exact=is_exact)
        assert np.array_equal(alone[0], together[row])


def some_weight(library: Library) -> Packed:
    return pack(library, Q4_1, raw_rows(Q4_1, 32, 64), 64)


def test_zeros_give_zeros(library: Library) -> None:
    found = linear(library, np.zeros((3, 64), np.float32), some_weight(library), is_exact=False)
    assert not found.any()


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so_and_in_its_row(library: Library, poison: float) -> None:
    weight, x = some_weight(library), activations(5, 64)
    clean = linear(library, x, weight, is_exact=False)
    x[2, 40] = poison
    found = linear(library, x, weight, is_exact=False)
    assert not np.isfinite(found[2]).any()
    assert np.array_equal(np.delete(found, 2, axis=0), np.delete(clean, 2, axis=0))
