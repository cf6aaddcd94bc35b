"""The KV pool as the kernels lay it out: tiles of 16 tokens."""

from __future__ import annotations

from dataclasses import dataclass

from . import abi
from .packed import Bytes, aligned


@dataclass(frozen=True, slots=True)
class TiledCache:
    """K and V of all layers, [layers, 2, slots / 16, KVH] tiles. Memory is taken as it is used."""

    data: Bytes
    num_slots: int
    is_bf16: bool

    @classmethod
    def make(
        cls, num_layers: int, num_slots: int, num_kv_heads: int, head_dim: int, *, is_bf16: bool
    ) -> TiledCache:
        """Make a pool for `num_slots` tokens, rounded up to whole tiles. Raises: MemoryError."""
        num_slots = -(-num_slots // abi.TILE) * abi.TILE
        num_values = 2 * num_layers * num_slots * num_kv_heads * head_dim
        return cls(aligned(num_values * (2 if is_bf16 else 4)), num_slots, is_bf16)

    @property
    def struct(self) -> abi.Cache:
        """What the kernels read; valid as long as this object lives."""
        return abi.Cache(self.data.ctypes.data, self.num_slots, self.is_bf16, 0)
