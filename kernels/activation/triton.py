"""The gated activation by Triton. Needs the package `triton`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = tl.constexpr(1024)  # numbers a program


def silu_mul(gate_up: Tensor) -> Tensor:
    """Split `gate_up` [T, 2 * I] in halves and give silu(first) * second, [T, I]."""
    assert gate_up.is_contiguous()
    size = gate_up.shape[1] // 2
    out = torch.empty(len(gate_up), size, dtype=gate_up.dtype, device=gate_up.device)
    if out.numel():
        _silu_mul[(len(gate_up), triton.cdiv(size, BLOCK.value))](gate_up, out, size)
    return out


@triton.jit  # type: ignore[untyped-decorator]
def _silu_mul(gate_up: torch.Tensor, out: torch.Tensor, size: int) -> None:
    """Compute BLOCK numbers of one row, in fp32."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_inside = columns < size
    gate = tl.load(gate_up + row * 2 * size + columns, mask=is_inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * 2 * size + size + columns, mask=is_inside, other=0.0)
    value = gate * tl.sigmoid(gate) * up.to(tl.float32)
    tl.store(out + row * size + columns, value, mask=is_inside)
