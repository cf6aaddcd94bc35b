"""Linear layers by oneDNN, over weights that are packed once.

Torch's plain product reads a row-major weight at a third of the memory's speed where there are
few rows: on two cores a decode step of 16 sequences took 75 ms of products, packed 34.
"""

from __future__ import annotations

import torch
from torch import Tensor

# The layout oneDNN chooses for so many rows serves one row and five hundred as well.
TYPICAL_ROWS = 16


def is_supported(weight: Tensor) -> bool:
    """Say whether this build of torch and this machine can pack `weight`."""
    return (
        weight.device.type == "cpu"
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and (weight.dtype == torch.float32 or _has_bfloat16(weight))
    )


def _has_bfloat16(weight: Tensor) -> bool:
    is_supported: bool = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return weight.dtype == torch.bfloat16 and is_supported


def pack(weight: Tensor) -> Tensor:
    """Copy `weight` [out, in] into the layout that `linear` wants."""
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, TYPICAL_ROWS)
    return packed


def linear(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    """Give what `reference.linear` gives for the weight that was packed."""
    out: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return out
