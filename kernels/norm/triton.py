"""The norm by Triton, one row a program. Needs the package `triton`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Divide `x` [T, D] or [T, H, D] by its root mean square over D, and scale by `weight`.

    `weight` is [D] or [H, D]. Rows of `x` may be apart, as in a part of a wider tensor.
    """
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    _launch(x, x, out, weight, eps, is_added=False)
    return out


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Add `x` [T, D] to `residual` in place, and give the norm of the sum."""
    assert residual.is_contiguous()
    assert x.shape == residual.shape
    out = torch.empty_like(residual)
    _launch(x, residual, out, weight, eps, is_added=True)
    return out


def _launch(
    x: Tensor, residual: Tensor, out: Tensor, weight: Tensor, eps: float, *, is_added: bool
) -> None:
    num_heads = x.shape[1] if x.dim() == 3 else 1
    assert x.stride(-1) == 1
    assert weight.is_contiguous()
    assert weight.numel() in (x.shape[-1], num_heads * x.shape[-1])
    num_rows = len(x) * num_heads
    if num_rows == 0:
        return
    head_stride = x.stride(1) if x.dim() == 3 else 0
    block = triton.next_power_of_2(x.shape[-1])
    _norm[(num_rows,)](
        x,
        residual,
        out,
        weight,
        eps,
        x.stride(0),
        head_stride,
        num_heads,
        weight.numel() // x.shape[-1],
        SIZE=x.shape[-1],
        BLOCK=block,
        IS_ADDED=is_added,
        num_warps=min(16, max(1, block // 512)),
    )


@triton.jit  # type: ignore[untyped-decorator]
def _norm(
    x: torch.Tensor,
    residual: torch.Tensor,
    out: torch.Tensor,
    weight: torch.Tensor,
    eps: float,
    token_stride: int,
    head_stride: int,
    num_heads: int,
    weight_rows: int,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
    IS_ADDED: tl.constexpr,
) -> None:
    """Norm one row in fp32; the sum is rounded to the residual's numbers first."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    is_inside = columns < SIZE
    at = (row // num_heads) * token_stride + (row % num_heads) * head_stride
    values = tl.load(x + at + columns, mask=is_inside, other=0.0)
    if IS_ADDED:
        old = tl.load(residual + row * SIZE + columns, mask=is_inside, other=0.0)
        values = (old.to(tl.float32) + values.to(tl.float32)).to(old.dtype)
        tl.store(residual + row * SIZE + columns, values, mask=is_inside)
    wide = values.to(tl.float32)
    inverse = tl.rsqrt(tl.sum(wide * wide, 0) / SIZE + eps)
    normed = (wide * inverse).to(values.dtype).to(tl.float32)
    at_weight = weight + (row % weight_rows) * SIZE + columns
    scale = tl.load(at_weight, mask=is_inside, other=0.0).to(tl.float32)
    tl.store(out + row * SIZE + columns, normed * scale, mask=is_inside)
