"""The fast norm equals its definition."""

from __future__ import annotations

import pytest
import torch

from plait.kernels.norm import rms_norm
from plait.kernels.norm.reference import rms_norm as reference


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("size", [1, 63, 500])
def test_rows_are_normed_as_defined(size: int) -> None:
    x, weight = torch.randn(7, size), torch.randn(size)
    torch.testing.assert_close(rms_norm(x, weight, 1e-5), reference(x, weight, 1e-5))


def test_each_head_may_have_its_own_weight() -> None:
    x, weight = torch.randn(5, 3, 64), torch.randn(3, 64)
    torch.testing.assert_close(rms_norm(x, weight, 1e-6), reference(x, weight, 1e-6))


def test_a_row_of_zeros_stays_zero() -> None:
    assert not rms_norm(torch.zeros(2, 16), torch.ones(16), 1e-6).any()


def test_bfloat16_is_normed_in_wider_numbers() -> None:
    x = (torch.randn(3, 64) * 1e4).bfloat16()
    found = rms_norm(x, torch.ones(64, dtype=torch.bfloat16), 1e-6)
    wanted = reference(x, torch.ones(64, dtype=torch.bfloat16), 1e-6)
    torch.testing.assert_close(found, wanted, rtol=1e-2, atol=1e-2)  # one bit of 8
