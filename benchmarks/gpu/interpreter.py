"""bfloat16 in Triton's interpreter, which multiplies bit patterns and rounds towards zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter


def mend_bfloat16() -> None:
    """Give the interpreter a GPU's products and roundings of bfloat16, for the whole process."""
    builder: Any = interpreter.InterpreterBuilder
    multiply, convert = builder.create_dot, builder.cast_impl

    def create_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        return multiply(self, _widened(a), _widened(b), *rest)

    def cast_impl(self: Any, source: Any, target: Any) -> Any:
        if (source.dtype.scalar, target.scalar) != (tl.float32, tl.bfloat16):
            return convert(self, source, target)
        return interpreter.TensorHandle(_rounded(source.data), tl.bfloat16)

    builder.create_dot, builder.cast_impl = create_dot, cast_impl


def _widened(operand: Any) -> Any:
    """Give an operand as fp32, which holds every product of two bfloat16."""
    if operand.dtype.scalar != tl.bfloat16:
        return operand
    wide = (operand.data.astype(np.uint32) << 16).view(np.float32)
    return interpreter.TensorHandle(wide, tl.float32)


def _rounded(values: Any) -> Any:
    """Give the bits of the nearest bfloat16, the even one of two; NaN stays NaN."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)
