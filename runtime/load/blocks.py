"""A matrix in the number format of its file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .quants import F32, Bytes, Floats


@dataclass(frozen=True, slots=True)
class Blocks:
    """A tensor's rows as they lie in the file, in the number format `kind` of GGML."""

    kind: int
    raw: Bytes  # [rows, bytes of a row]
    shape: tuple[int, ...]


def blocks_of(values: Floats) -> Blocks:
    """Give a matrix's rows as fp32."""
    return Blocks(F32, np.ascontiguousarray(values).view(np.uint8), values.shape)
