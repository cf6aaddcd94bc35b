"""How fast each pair of a head turns."""

from __future__ import annotations

import math

import numpy as np

from ..load.quants import Floats
from .config import RopeConfig


def inverse_frequencies(rope: RopeConfig, head_dim: int) -> Floats:
    """Give the angle of each pair of a head per position, [head_dim / 2], fp32."""
    exponents = np.arange(0, head_dim, 2).astype(np.float32) / np.float32(head_dim)
    plain: Floats = np.reciprocal(np.power(np.float32(rope.theta), exponents))
    match rope.kind:
        case "default":
            return plain
        case "linear":
            return plain / np.float32(rope.factor)
        case "llama3":
            return _llama3_frequencies(plain, rope)


def _llama3_frequencies(plain: Floats, rope: RopeConfig) -> Floats:
    """Slow down long waves, keep short ones, and blend in between. After: Llama 3.1."""
    turns = rope.original_context * plain / (2 * math.pi)  # within the original context
    blend = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    blend = blend.clip(0.0, 1.0)
    return (1 - blend) * plain / rope.factor + blend * plain
