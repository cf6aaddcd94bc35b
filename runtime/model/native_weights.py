"""A model's weights as the compiled kernels read them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from ctypes import Array
from dataclasses import dataclass

import numpy as np

from ...kernels.native import FORMATS, Arena, Library, Packed, abi, pack
from ...kernels.native.packed import Floats
from .config import ModelConfig
from .host import physical_cores
from .tensors import (
    EMBEDDING,
    HEAD,
    NORM,
    BlockSource,
    Shape,
    account,
    check_shape,
    expected_shapes,
)

_PROJECTIONS = {
    **{name: f"self_attn.{name}_proj.weight" for name in ("q", "k", "v", "o")},
    **{name: f"mlp.{name}_proj.weight" for name in ("gate", "up", "down")},
}
_NORMS = {
    "input_norm": "input_layernorm.weight",
    "post_norm": "post_attention_layernorm.weight",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
}


def is_native(config: ModelConfig) -> bool:
    """Say whether the kernels know models of this shape."""
    sizes = (config.hidden_size, config.intermediate_size, config.num_heads * config.head_dim)
    is_whole = not any(size % abi.BLOCK for size in sizes)
    return is_whole and config.head_dim % abi.TILE == 0 and config.head_dim <= abi.MAX_HEAD_DIM


@dataclass(frozen=True, slots=True)
class NativeWeights:
    """Every weight of a model, packed, under Hugging Face's names."""

    config: ModelConfig
    linears: Mapping[str, Packed]
    vectors: Mapping[str, Floats]  # norms and biases

    def struct(self, layers: Array[abi.Layer], *, is_exact: bool) -> abi.Model:
        """Give what the kernels read; valid as long as this object and `layers` live."""
        config = self.config
        return abi.Model(
            num_layers=config.num_layers,
            hidden=config.hidden_size,
            num_heads=config.num_heads,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            inner=config.intermediate_size,
            vocab=config.vocab_size,
            is_exact=is_exact,
            eps=config.norm_eps,
            norm=self.vectors[NORM].ctypes.data,
            embedding=self.linears[EMBEDDING].struct,
            head=self.linears[EMBEDDING if config.is_tied else HEAD].struct,
            layers=layers,
        )

    def layers(self) -> Array[abi.Layer]:
        """Give what the kernels read of all layers; valid as long as this object lives."""
        num_layers = self.config.num_layers
        return (abi.Layer * num_layers)(*map(self._layer, range(num_layers)))

    def _layer(self, index: int) -> abi.Layer:
        at = f"model.layers.{index}."
        norms = {field: self.vectors.get(at + name) for field, name in _NORMS.items()}
        return abi.Layer(
            **{field: None if v is None else v.ctypes.data for field, v in norms.items()},
            **{field: self.linears[at + name].struct for field, name in _PROJECTIONS.items()},
        )


def read_native(config: ModelConfig, source: BlockSource, library: Library) -> NativeWeights:
    """Pack a model's tensors.

    Raises: ModelLoadError, naming tensors that are missing, stray or of the wrong shape.
    """
    shapes = expected_shapes(config)
    account(shapes, source.names(), config.is_tied)
    vectors = {n: _vector(source, n, shape) for n, shape in shapes.items() if len(shape) == 1}

    arena = Arena()

    def packed(name: str) -> Packed:
        bias = vectors.get(f"{name.removesuffix('.weight')}.bias")
        blocks = source.blocks(name, FORMATS)
        check_shape(name, blocks.shape, shapes[name])
        return pack(library, blocks.kind, blocks.raw, blocks.shape[1], bias, arena)

    names = [name for name, shape in shapes.items() if len(shape) == 2]
    with ThreadPoolExecutor(physical_cores()) as pool:
        linears = dict(zip(names, pool.map(packed, names), strict=True))
    return NativeWeights(config, linears, vectors)


def _vector(source: BlockSource, name: str, shape: Shape) -> Floats:
    values = source.tensor(name)
    check_shape(name, values.shape, shape)
    return np.ascontiguousarray(values)
