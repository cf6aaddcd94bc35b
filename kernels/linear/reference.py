"""The definition of a linear layer, over plain and quantised weights."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .quantized import BLOCK_LEN, QuantizedLinear


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Multiply `x` [T, in] by `weight` [out, in] transposed, and add `bias` [out]; [T, out]."""
    return F.linear(x, weight, bias)


def dequantize(layer: QuantizedLinear) -> Tensor:
    """Give the weight [out, in] in fp32."""
    per_block = 16 if layer.is_four_bits else BLOCK_LEN
    codes = layer.codes.reshape(len(layer.codes), -1, per_block)
    if layer.is_four_bits:
        codes = torch.cat((codes & 15, codes >> 4), dim=-1)  # [out, in / 32, 32]
    scales = layer.scales.float()[..., None]
    if layer.least is not None:
        return (codes.float() * scales + layer.least.float()[..., None]).flatten(1)
    return ((codes.float() - (8 if layer.is_four_bits else 0)) * scales).flatten(1)


def quantized_linear(x: Tensor, layer: QuantizedLinear) -> Tensor:
    """Multiply `x` [T, in] by the weight transposed, and add the bias; [T, out]."""
    return linear(x, dequantize(layer).to(x.dtype), layer.bias)
