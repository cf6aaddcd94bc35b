"""The tensors that hold keys and values, in blocks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import ModelLoadError


@dataclass(frozen=True, slots=True)
class KVShape:
    """The sizes of a pool."""

    num_layers: int
    num_blocks: int
    block_size: int  # tokens
    num_kv_heads: int
    head_dim: int

    @property
    def num_values(self) -> int:
        """Count the numbers that the pool holds."""
        return self.num_blocks * self.block_size * self.values_per_token

    @property
    def values_per_token(self) -> int:
        """Count the numbers that one token takes, K and V of all layers."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim


class KVCache:
    """One pool of blocks for each layer; who uses which block is decided elsewhere.

    The memory is not written before it is used, so a large pool costs nothing at the start;
    until then a slot holds anything, NaN included.

    Raises: ModelLoadError if the device has not so much memory.
    """

    def __init__(self, shape: KVShape, dtype: torch.dtype, device: torch.device) -> None:
        self.shape = shape
        sizes = (shape.num_blocks, shape.block_size, shape.num_kv_heads, shape.head_dim)
        try:
            pool = torch.empty(shape.num_layers, 2, *sizes, dtype=dtype, device=device)
        except (RuntimeError, MemoryError) as e:
            size_gb = shape.num_values * dtype.itemsize / 1e9
            raise ModelLoadError(
                f"no memory for a KV pool of {shape.num_blocks * shape.block_size} tokens "
                f"({size_gb:.1f} GB) on {device}; set kv_cache_tokens to fewer"
            ) from e
        self.pool = pool  # [layers, 2, num_blocks, block_size, KVH, D]
        self.layers: tuple[tuple[Tensor, Tensor], ...] = tuple(
            (layer[0], layer[1]) for layer in pool
        )
