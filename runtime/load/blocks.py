"""A matrix in the number format of its file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .quants import F32, Bytes


@dataclass(frozen=True, slots=True)
class Blocks:
    """A tensor's rows as they lie in the file, in the number format `kind` of GGML."""

    kind: int
    raw: Bytes  # [rows, bytes of a row]
    shape: tuple[int, ...]


def blocks_of(tensor: torch.Tensor) -> Blocks:
    """Give a matrix's rows as fp32."""
    values = np.ascontiguousarray(tensor.numpy())
    return Blocks(F32, values.view(np.uint8), tuple(tensor.shape))
