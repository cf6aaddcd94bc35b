"""The fast bitmasks equal their definition, and the definition is what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec

import pytest
import torch

from plait.kernels.mask import apply_bitmask
from plait.kernels.mask.reference import apply_bitmask as reference

SIZES = (1, 31, 32, 33, 63, 500, 49152)
Apply = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]


def random_bitmask(
    num: int, width: int, density: float, generator: torch.Generator
) -> torch.Tensor:
    """Masks of the wanted density; the bits past the width are random too."""
    bits = torch.rand(num, -(-width // 32), 32, generator=generator) < density
    words = (bits.long() << torch.arange(32)).sum(-1)
    return words.to(torch.int32)  # wraps: bit 31 is the sign


def check(apply: Apply, width: int, density: float, *, is_wild: bool = False) -> None:
    """Compare `apply` with the definition on rows 3 and 1 of 5."""
    generator = torch.Generator().manual_seed(width)
    logits = torch.randn(5, width, generator=generator)
    if is_wild:
        for value in (torch.nan, torch.inf, -torch.inf):
            logits[torch.rand(5, width, generator=generator) < 0.2] = value
    bitmask, rows = random_bitmask(2, width, density, generator), torch.tensor([3, 1])
    expected = logits.clone()
    reference(expected, bitmask, rows)
    kept = bitmask.clone()
    apply(logits, bitmask, rows)
    torch.testing.assert_close(logits, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(bitmask, kept)


@pytest.mark.parametrize("width", SIZES)
def test_the_definition_looks_at_one_bit_a_token(width: int) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.full((3, width), torch.nan)
    bitmask = random_bitmask(1, width, 0.5, generator)
    reference(logits, bitmask, torch.tensor([1]))
    words = bitmask[0].tolist()
    allowed = [words[token // 32] >> token % 32 & 1 == 1 for token in range(width)]
    assert logits[1].isnan().tolist() == allowed
    assert (logits[1][~torch.tensor(allowed)] == -torch.inf).all()
    assert logits[[0, 2]].isnan().all()


def test_a_slice_of_wider_logits_is_masked_in_place() -> None:
    whole = torch.full((2, 80), torch.nan)
    bitmask = random_bitmask(2, 70, 0.5, torch.Generator().manual_seed(1))
    apply_bitmask(whole[:, :70], bitmask, torch.tensor([0, 1]))
    assert whole[:, 70:].isnan().all()
    assert (whole[:, :70] == -torch.inf).any(1).all()


def test_no_rows_change_nothing() -> None:
    logits = torch.zeros(2, 40)
    apply_bitmask(logits, torch.zeros(0, 2, dtype=torch.int32), torch.zeros(0, dtype=torch.int64))
    assert not logits.any()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("triton") is None, reason="needs triton, which is not installed")
def test_the_triton_kernel_is_as_defined_under_the_interpreter() -> None:
    """In a process of its own: Triton reads TRITON_INTERPRET when it is imported."""
    env = os.environ | {"TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, __file__], env=env, check=True, timeout=200)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("width", SIZES)
def test_a_gpu_masks_as_defined(width: int) -> None:
    def on_gpu(logits: torch.Tensor, bitmask: torch.Tensor, rows: torch.Tensor) -> None:
        moved = logits.cuda()
        apply_bitmask(moved, bitmask.cuda(), rows.cuda())
        logits.copy_(moved)

    check(on_gpu, width, 0.5, is_wild=True)


def check_triton() -> None:
    """Compare the Triton kernel with the definition, on this process's device."""
    from plait.kernels.mask.triton import apply_bitmask as apply_triton

    for width in SIZES:
        for density in (0.0, 0.02, 0.5, 1.0):
            check(apply_triton, width, density, is_wild=True)
    apply_triton(torch.zeros(1, 3), torch.zeros(0, 1, dtype=torch.int32), torch.zeros(0).long())


if __name__ == "__main__":
    check_triton()
