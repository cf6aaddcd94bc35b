"""Products with quantised weights by Triton: decoded a tile at a time, never written back.

Needs the package `triton`.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..tuning import Config, choose
from .quantized import QuantizedLinear

MANY_ROWS = 32  # from here on a taller tile pays
BLOCK_K = tl.constexpr(64)  # columns of codes at a time


def quantized_linear(x: Tensor, layer: QuantizedLinear, config: Config | None = None) -> Tensor:
    """Multiply `x` [T, in] by the weight transposed, and add the bias; [T, out].

    The weight is rounded to the dtype of `x`; sums are fp32.
    """
    num_rows, out_size = len(x), len(layer.codes)
    assert x.stride(1) == 1
    assert layer.codes.is_contiguous()
    assert layer.scales.is_contiguous()
    out = torch.empty(num_rows, out_size, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    kernel = "linear4" if layer.is_four_bits else "linear8"
    shape = "64" if num_rows >= MANY_ROWS else "16"
    config = config or choose(kernel, shape, x.device)
    grid = (triton.cdiv(out_size, config.block_n), triton.cdiv(num_rows, config.block_m))
    _multiply[grid](
        x,
        layer.codes,
        layer.scales,
        layer.scales if layer.least is None else layer.least,
        x if layer.bias is None else layer.bias,
        out,
        num_rows,
        out_size,
        layer.codes.shape[1],
        x.stride(0),
        IS_FOUR_BITS=layer.is_four_bits,
        HAS_LEAST=layer.least is not None,
        HAS_BIAS=layer.bias is not None,
        BLOCK_M=config.block_m,
        BLOCK_N=config.block_n,
        num_warps=config.num_warps,
        num_stages=config.num_stages,
    )
    return out


@triton.jit(do_not_specialize=["num_rows"])  # type: ignore[untyped-decorator]
def _multiply(
    x: torch.Tensor,
    codes: torch.Tensor,
    scales: torch.Tensor,
    least: torch.Tensor,
    bias: torch.Tensor,
    out: torch.Tensor,
    num_rows: int,
    out_size: int,
    code_size: int,  # columns of the codes
    x_stride: int,
    IS_FOUR_BITS: tl.constexpr,
    HAS_LEAST: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
) -> None:
    """Compute a tile [BLOCK_M, BLOCK_N]. Low and high halves of bytes are two products."""
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)  # of out
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    is_row = rows < num_rows
    is_column = columns < out_size
    PER_BLOCK: tl.constexpr = 16 if IS_FOUR_BITS else 32
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    x_at = x + rows.to(tl.int64)[:, None] * x_stride
    for start in range(0, code_size, BLOCK_K):
        places = start + tl.arange(0, BLOCK_K)
        is_place = places < code_size
        is_code = is_place[:, None] & is_column[None, :]
        code_at = columns.to(tl.int64)[None, :] * code_size + places[:, None]
        code = tl.load(codes + code_at, mask=is_code, other=0)  # [BLOCK_K, BLOCK_N]
        block_at = columns.to(tl.int64)[None, :] * (code_size // PER_BLOCK)
        block_at = block_at + (places // PER_BLOCK)[:, None]
        scale = tl.load(scales + block_at, mask=is_code, other=0.0).to(tl.float32)
        is_x = is_row[:, None] & is_place[None, :]
        if IS_FOUR_BITS:
            offset = -8.0 * scale
            if HAS_LEAST:
                offset = tl.load(least + block_at, mask=is_code, other=0.0).to(tl.float32)
            in_x = places + places // 16 * 16
            low_x = tl.load(x_at + in_x[None, :], mask=is_x, other=0.0)
            high_x = tl.load(x_at + (in_x + 16)[None, :], mask=is_x, other=0.0)
            low = (code & 15).to(tl.float32) * scale + offset
            high = (code >> 4).to(tl.float32) * scale + offset
            acc = tl.dot(low_x, low.to(low_x.dtype), acc, input_precision="ieee")
            acc = tl.dot(high_x, high.to(high_x.dtype), acc, input_precision="ieee")
        else:
            some_x = tl.load(x_at + places[None, :], mask=is_x, other=0.0)
            weight = code.to(tl.float32) * scale
            acc = tl.dot(some_x, weight.to(some_x.dtype), acc, input_precision="ieee")
    if HAS_BIAS:
        acc += tl.load(bias + columns, mask=is_column, other=0.0).to(tl.float32)[None, :]
    out_at = out + rows.to(tl.int64)[:, None] * out_size + columns[None, :]
    tl.store(out_at, acc, mask=is_row[:, None] & is_column[None, :])
