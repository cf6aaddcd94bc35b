"""Packed products equal their definition."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from plait.kernels.linear import Linear, linear, prepare
from plait.kernels.linear.reference import linear as reference


def random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def relative_rms(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).pow(2).mean().sqrt() / wanted.pow(2).mean().sqrt())


@pytest.mark.parametrize("num_rows", [1, 2, 16, 63, 500])
@pytest.mark.parametrize("sizes", [(1, 1), (63, 500), (64, 48), (500, 63)])
@pytest.mark.parametrize("has_bias", [False, True])
def test_products_are_as_defined(num_rows: int, sizes: tuple[int, int], has_bias: bool) -> None:
    weight, x = random(*sizes), random(num_rows, sizes[1])
    bias = random(sizes[0]) if has_bias else None
    found, wanted = linear(x, prepare(weight, bias)), reference(x, weight, bias)
    assert relative_rms(found, wanted) < 1e-6  # fp32 sums of up to 500 terms


def test_bfloat16_stays_within_its_precision() -> None:
    weight, x = random(64, 48, dtype=torch.bfloat16), random(5, 48, dtype=torch.bfloat16)
    found = linear(x, prepare(weight)).float()
    assert relative_rms(found, reference(x.float(), weight.float(), None)) < 1e-2  # 8 bits


def test_a_plain_weight_is_multiplied_as_well() -> None:
    weight, x = random(64, 48), random(5, 48)
    assert torch.equal(linear(x, Linear(weight, None, False)), reference(x, weight, None))


def test_no_rows_give_no_rows() -> None:
    assert linear(random(0, 48), prepare(random(64, 48))).shape == (0, 64)


def test_rows_may_be_part_of_wider_ones() -> None:
    weight, x = random(64, 48), random(5, 96)[:, 48:]
    assert relative_rms(linear(x, prepare(weight)), reference(x, weight, None)) < 1e-6


def test_nan_in_one_row_stays_in_it() -> None:
    weight, x = random(64, 48), random(5, 48)
    x[2] = torch.nan
    found = linear(x, prepare(weight))
    assert found[2].isnan().all()
    assert not found[[0, 1, 3, 4]].isnan().any()
