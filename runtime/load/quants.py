"""GGML's number formats: their sizes, and how each becomes fp32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import ModelLoadError

Bytes: TypeAlias = npt.NDArray[np.uint8]
Floats: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Format:
    """A number format: blocks of `block_len` numbers in `block_bytes` bytes.

    `decode` takes [n, block_bytes] and gives [n, block_len]; None where the gguf package
    does it.
    """

    name: str
    block_len: int
    block_bytes: int
    decode: Callable[[Bytes], Floats] | None = None


def _halves(blocks: Bytes, column: int) -> Floats:
    """Read the fp16 at byte `column` of every block, [n, 1]."""
    raw = np.ascontiguousarray(blocks[:, column : column + 2])
    return raw.view(np.float16).astype(np.float32)


def _nibbles(packed: Bytes) -> Floats:
    """Unpack [n, 16] bytes to [n, 32]: the low halves first, then the high ones."""
    out = np.empty((len(packed), 32), np.float32)
    out[:, :16] = packed & 15
    out[:, 16:] = packed >> 4
    return out


def _f32(blocks: Bytes) -> Floats:
    return blocks.view(np.float32).copy()


def _f16(blocks: Bytes) -> Floats:
    return blocks.view(np.float16).astype(np.float32)


def _bf16(blocks: Bytes) -> Floats:
    # bf16 is the upper half of an fp32.
    return (blocks.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def _q4_0(blocks: Bytes) -> Floats:
    out = _nibbles(blocks[:, 2:])
    out -= 8
    out *= _halves(blocks, 0)
    return out


def _q4_1(blocks: Bytes) -> Floats:
    out = _nibbles(blocks[:, 4:])
    out *= _halves(blocks, 0)
    out += _halves(blocks, 2)
    return out


def _q8_0(blocks: Bytes) -> Floats:
    out = blocks[:, 2:].view(np.int8).astype(np.float32)
    out *= _halves(blocks, 0)
    return out


F32, F16, BF16 = 0, 1, 30  # GGML's numbers

_FORMATS = {
    F32: Format("F32", 1, 4, _f32),
    F16: Format("F16", 1, 2, _f16),
    2: Format("Q4_0", 32, 18, _q4_0),
    3: Format("Q4_1", 32, 20, _q4_1),
    6: Format("Q5_0", 32, 22),
    7: Format("Q5_1", 32, 24),
    8: Format("Q8_0", 32, 34, _q8_0),
    10: Format("Q2_K", 256, 84),
    11: Format("Q3_K", 256, 110),
    12: Format("Q4_K", 256, 144),
    13: Format("Q5_K", 256, 176),
    14: Format("Q6_K", 256, 210),
    BF16: Format("BF16", 1, 2, _bf16),
}


def number_format(kind: int) -> Format:
    """Give the format with GGML's number `kind`.

    Raises: ModelLoadError with its name if it is not supported.
    """
    if kind in _FORMATS:
        return _FORMATS[kind]
    from gguf import GGMLQuantizationType

    known = {int(member): str(member.name) for member in GGMLQuantizationType}
    supported = ", ".join(one.name for one in _FORMATS.values())
    raise ModelLoadError(
        f"quantisation {known.get(kind, f'number {kind}')} is not supported; "
        f"take a file with one of {supported}"
    )


def num_bytes(shape: tuple[int, ...], kind: int) -> int:
    """Compute how many bytes a tensor takes; its rows are whole blocks.

    Raises: ModelLoadError if they are not, or the format is not supported.
    """
    form = number_format(kind)
    if shape[-1] % form.block_len != 0:
        raise ModelLoadError(
            f"a row of {shape[-1]} numbers is not a multiple of {form.name}'s "
            f"{form.block_len}; the file is damaged"
        )
    return prod(shape) // form.block_len * form.block_bytes


def dequantize(raw: Bytes, kind: int, shape: tuple[int, ...]) -> Floats:
    """Turn a tensor's bytes into fp32 of `shape`, always a copy."""
    form = number_format(kind)
    blocks = raw.reshape(-1, form.block_bytes)
    decode = form.decode or _by_gguf(kind)
    return decode(blocks).reshape(shape)


def _by_gguf(kind: int) -> Callable[[Bytes], Floats]:
    # K-quants are rare enough here that the gguf package's plain numpy will do.
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize as decode

    def run(blocks: Bytes) -> Floats:
        out: Floats = decode(blocks, GGMLQuantizationType(kind))
        return out

    return run
