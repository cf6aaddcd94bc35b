"""Weights in the layout of the kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from . import abi
from .library import Library

Bytes: TypeAlias = npt.NDArray[np.uint8]
Floats: TypeAlias = npt.NDArray[np.float32]

_ALIGNMENT = 64  # bytes: a vector never crosses a cache line
# GGML's numbers of the formats that are packed as they are, and what each becomes.
FORMATS: Final[Mapping[int, int]] = {
    0: abi.KIND_F32,
    2: abi.KIND_Q4,
    3: abi.KIND_Q4,
    8: abi.KIND_Q8,
    30: abi.KIND_BF16,
}


@dataclass(frozen=True, slots=True)
class Packed:
    """A weight [rows, cols], and its bias [rows] if it has one."""

    data: Bytes
    bias: Floats | None
    kind: int
    rows: int
    cols: int

    @property
    def struct(self) -> abi.Linear:
        """What the kernels read; valid as long as this object lives."""
        bias = None if self.bias is None else self.bias.ctypes.data
        return abi.Linear(self.data.ctypes.data, bias, self.kind, self.rows, self.cols, 0)


def pack(
    library: Library, number_format: int, raw: Bytes, cols: int, bias: Floats | None = None
) -> Packed:
    """Pack rows `raw` [rows, bytes of a row] in one of FORMATS."""
    kind, rows = FORMATS[number_format], len(raw)
    data = aligned(library.functions.plait_packed_bytes(kind, rows, cols))
    raw = np.ascontiguousarray(raw)
    library.functions.plait_pack(number_format, raw.ctypes.data, 0, rows, cols, data.ctypes.data)
    return Packed(data, bias, kind, rows, cols)


def linear(library: Library, x: Floats, weight: Packed, *, is_exact: bool) -> Floats:
    """Multiply `x` [T, in] by a weight transposed, and add its bias; [T, out].

    With `is_exact` the activations stay fp32; else those that meet quantised weights become
    8-bit numbers with a scale for each 32.
    """
    x = np.ascontiguousarray(x, np.float32)
    out = np.full((len(x), weight.rows), np.nan, np.float32)
    struct = ctypes.byref(weight.struct)
    library.functions.plait_linear(struct, x.ctypes.data, len(x), is_exact, out.ctypes.data)
    return out


def aligned(num_bytes: int) -> Bytes:
    """Give zeroed memory that begins at a multiple of 64 bytes."""
    memory = np.zeros(num_bytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + num_bytes]
