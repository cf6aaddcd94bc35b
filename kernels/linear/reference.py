"""The definition of a linear layer."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Multiply `x` [T, in] by `weight` [out, in] transposed, and add `bias` [out]; [T, out]."""
    return F.linear(x, weight, bias)
