"""Weights in the layout of the kernels."""

from __future__ import annotations

import ctypes
import threading
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
_LARGE_PAGE = 2 << 20  # bytes
_PIECE = 64 << 20  # bytes that an arena asks for; what is not used of them takes no memory
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


class Arena:
    """Memory for many weights, side by side in large pieces. Thread-safe.

    The system backs large pieces with large pages, whose places the processor knows at once: one
    sequence's step, which reads all weights, takes 0.9 of the time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rest = np.empty(0, np.uint8)

    def take(self, num_bytes: int) -> Bytes:
        """Give zeroed memory that begins at a multiple of 64 bytes."""
        if num_bytes > _PIECE // 2:  # large by itself; the rest of a piece would be lost
            return aligned(num_bytes)
        padded = -(-num_bytes // _ALIGNMENT) * _ALIGNMENT
        with self._lock:
            if padded > len(self._rest):
                self._rest = aligned(_PIECE, _LARGE_PAGE)
            taken, self._rest = self._rest[:num_bytes], self._rest[padded:]
        return taken


def pack(
    library: Library,
    number_format: int,
    raw: Bytes,
    cols: int,
    bias: Floats | None = None,
    arena: Arena | None = None,
) -> Packed:
    """Pack rows `raw` [rows, bytes of a row] in one of FORMATS, into memory of an arena."""
    kind, rows = FORMATS[number_format], len(raw)
    take = aligned if arena is None else arena.take
    data = take(library.functions.plait_packed_bytes(kind, rows, cols))
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


def aligned(num_bytes: int, alignment: int = _ALIGNMENT) -> Bytes:
    """Give zeroed memory that begins at a multiple of `alignment` bytes."""
    memory = np.zeros(num_bytes + alignment, np.uint8)
    start = -memory.ctypes.data % alignment
    return memory[start : start + num_bytes]
