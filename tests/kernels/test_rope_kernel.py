"""The fast rotation equals its definition."""

from __future__ import annotations

import pytest
import torch

from plait.kernels.rope import apply_rope, rotation
from plait.kernels.rope.reference import apply_rope as reference


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("head_dim", [2, 8, 64, 128])
@pytest.mark.parametrize("num_tokens", [1, 63, 500])
def test_heads_are_turned_as_defined(num_tokens: int, head_dim: int) -> None:
    x = torch.randn(num_tokens, 3, head_dim)
    inv_freq = 1.0 / 10000.0 ** (torch.arange(0, head_dim, 2) / head_dim)
    positions = torch.randint(0, 8192, (num_tokens,))
    found = apply_rope(x, rotation(positions, inv_freq, x.dtype))
    torch.testing.assert_close(found, reference(x, positions, inv_freq), rtol=0, atol=1e-5)


def test_position_zero_changes_nothing() -> None:
    x = torch.randn(4, 2, 8)
    turn = rotation(torch.zeros(4, dtype=torch.int64), torch.ones(4), x.dtype)
    assert torch.equal(apply_rope(x, turn), x)


def test_turning_keeps_lengths() -> None:
    x = torch.randn(4, 2, 8)
    turned = apply_rope(x, rotation(torch.arange(4), torch.rand(4), x.dtype))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
