"""Weights in 4 or 8 bits, laid out so that a kernel reads each plane in whole words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import torch
from torch import Tensor

QuantizedFormat: TypeAlias = Literal["Q4_0", "Q4_1", "Q8_0"]
BLOCK_LEN: Final = 32  # numbers that share a scale
BLOCK_BYTES: Final[dict[QuantizedFormat, int]] = {"Q4_0": 18, "Q4_1": 20, "Q8_0": 34}


@dataclass(frozen=True, slots=True)
class QuantizedLinear:
    """A weight [out, in] as codes and scales, and its bias; value = code * scale + least.

    Eight bits are int8 [out, in]. Of four bits byte 16 * b + j of a row holds number 32 * b + j
    in its low half and number 32 * b + j + 16 in its high one, uint8 [out, in / 2].
    """

    codes: Tensor
    scales: Tensor  # [out, in / 32] fp16
    least: Tensor | None  # [out, in / 32] fp16; None: -8 * scale for four bits, 0 for eight
    bias: Tensor | None  # [out]

    @property
    def is_four_bits(self) -> bool:
        """Say whether a byte of the codes holds two numbers."""
        return self.codes.dtype == torch.uint8

    def rows(self, ids: Tensor) -> QuantizedLinear:
        """Give some rows of the weight, still quantised, and no bias."""
        least = None if self.least is None else self.least.index_select(0, ids)
        codes, scales = self.codes.index_select(0, ids), self.scales.index_select(0, ids)
        return QuantizedLinear(codes, scales, least, None)


def from_blocks(raw: Tensor, form: QuantizedFormat, bias: Tensor | None = None) -> QuantizedLinear:
    """Sort the blocks of a GGUF matrix into planes; `raw` is uint8 [out, bytes of a row].

    A block is fp16 scale, for Q4_1 fp16 least value, then the codes. After: GGML.
    """
    blocks = raw.reshape(len(raw), -1, BLOCK_BYTES[form])
    scales = blocks[..., :2].contiguous().view(torch.float16)[..., 0].contiguous()
    least = None
    if form == "Q4_1":
        least = blocks[..., 2:4].contiguous().view(torch.float16)[..., 0].contiguous()
    codes = blocks[..., 4 if form == "Q4_1" else 2 :].flatten(1).contiguous()
    return QuantizedLinear(codes.view(torch.int8) if form == "Q8_0" else codes, scales, least, bias)
