"""Times of products with quantised weights, on the widest matrix of an 8B model's layer."""

from __future__ import annotations

import torch

from plait.kernels.linear import QuantizedFormat, QuantizedLinear, quantized_linear
from plait.kernels.linear.quantized import BLOCK_BYTES, BLOCK_LEN, from_blocks

from .floors import seconds

IN_SIZE, OUT_SIZE = 4096, 28672


def make_layer(form: QuantizedFormat, device: torch.device) -> tuple[QuantizedLinear, int]:
    """Give a weight of zeros, and its bytes."""
    num_bytes = IN_SIZE // BLOCK_LEN * BLOCK_BYTES[form]
    raw = torch.zeros(OUT_SIZE, num_bytes, dtype=torch.uint8, device=device)
    return from_blocks(raw, form), raw.numel()


def decode_seconds(form: QuantizedFormat, device: torch.device) -> tuple[float, int]:
    """Give the time of a product with one row, and the bytes of the weight."""
    layer, num_bytes = make_layer(form, device)
    x = torch.randn(1, IN_SIZE, device=device).bfloat16()
    return seconds(lambda: quantized_linear(x, layer)), num_bytes


def prefill_seconds(form: QuantizedFormat, device: torch.device) -> tuple[float, float]:
    """Give the times of a product of 512 rows with plain bf16 weights and with quantised ones."""
    layer, _ = make_layer(form, device)
    x = torch.randn(512, IN_SIZE, device=device).bfloat16()
    weight = torch.randn(OUT_SIZE, IN_SIZE, device=device).bfloat16()
    return seconds(lambda: x @ weight.T), seconds(lambda: quantized_linear(x, layer))
