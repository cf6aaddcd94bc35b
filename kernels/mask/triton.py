"""The bitmask by Triton, for NVIDIA GPUs. Needs the package `triton`.

With TRITON_INTERPRET=1 in the environment before the import it runs on the CPU, slowly.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = tl.constexpr(1024)  # tokens a program


def apply_bitmask(logits: Tensor, bitmask: Tensor, rows: Tensor) -> None:
    """Set the refused tokens of row `rows[i]` of `logits` to -inf, in place.

    Shapes and meaning are those of `reference.apply_bitmask`; all three are on one device.
    """
    width = logits.shape[1]
    if not len(rows) or not width:
        return
    assert logits.stride(1) == bitmask.stride(1) == rows.stride(0) == 1
    grid = (len(rows), triton.cdiv(width, BLOCK.value))
    _refuse[grid](logits, bitmask, rows, width, logits.stride(0), bitmask.stride(0))


@triton.jit  # type: ignore[untyped-decorator]
def _refuse(
    logits: torch.Tensor,
    bitmask: torch.Tensor,
    rows: torch.Tensor,
    width: int,
    logits_stride: int,
    bitmask_stride: int,
) -> None:
    """Write -inf over the refused of BLOCK tokens; no logit is read."""
    mask_id = tl.program_id(0).to(tl.int64)
    tokens = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_inside = tokens < width
    words = tl.load(bitmask + mask_id * bitmask_stride + tokens // 32, mask=is_inside, other=0)
    is_refused = ((words >> (tokens % 32)) & 1) == 0
    row = tl.load(rows + mask_id)
    tl.store(logits + row * logits_stride + tokens, float("-inf"), mask=is_inside & is_refused)
