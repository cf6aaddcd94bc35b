"""The gated activation of a Llama's MLP. GPUs have their own kernel."""

from __future__ import annotations

from torch import Tensor

from .. import device
from . import cpu

__all__ = ["silu_mul"]


def silu_mul(gate_up: Tensor) -> Tensor:
    """Split `gate_up` [T, 2 * I] in halves and give silu(first) * second, [T, I]."""
    if device.uses_triton(gate_up):
        from . import triton

        return triton.silu_mul(gate_up)
    return cpu.silu_mul(gate_up)
