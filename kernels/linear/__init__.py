"""Products with a model's weights. Where a device or format has its own kernel is decided here."""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor

from .. import device
from . import cpu, reference
from .quantized import QuantizedFormat, QuantizedLinear, from_blocks
from .weights import Linear

AnyLinear: TypeAlias = Linear | QuantizedLinear

__all__ = [
    "AnyLinear",
    "Linear",
    "QuantizedFormat",
    "QuantizedLinear",
    "embedding",
    "from_blocks",
    "linear",
    "prepare",
    "quantized_linear",
]


def prepare(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """Lay `weight` [out, in] out for this machine, once; `weight` itself may then be dropped."""
    if cpu.is_supported(weight):
        return Linear(cpu.pack(weight), bias, is_packed=True)
    return Linear(weight, bias, is_packed=False)


def linear(x: Tensor, layer: AnyLinear) -> Tensor:
    """Multiply `x` [T, in] by the weight transposed, and add the bias; [T, out]."""
    if isinstance(layer, QuantizedLinear):
        return quantized_linear(x, layer)
    if layer.is_packed:
        return cpu.linear(x, layer.weight, layer.bias)
    return reference.linear(x, layer.weight, layer.bias)


def quantized_linear(x: Tensor, layer: QuantizedLinear) -> Tensor:
    """Multiply `x` [T, in] by the weight transposed, and add the bias; [T, out]."""
    if device.uses_triton(x):
        from . import triton

        return triton.quantized_linear(x, layer)
    return reference.quantized_linear(x, layer)


def embedding(table: Tensor | QuantizedLinear, token_ids: Tensor, dtype: torch.dtype) -> Tensor:
    """Give rows `token_ids` [T] of a table [vocab, hidden], plain ones in its own dtype."""
    if isinstance(table, QuantizedLinear):
        return reference.dequantize(table.rows(token_ids)).to(dtype)
    return torch.embedding(table, token_ids)
