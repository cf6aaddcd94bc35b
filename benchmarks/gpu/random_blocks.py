"""Random weights in the quantised formats of GGUF files."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import quantize

from plait.kernels.linear import QuantizedFormat
from plait.runtime.load.blocks import Blocks, blocks_of
from plait.runtime.load.quants import Floats, dequantize
from plait.runtime.model.config import ModelConfig
from plait.runtime.model.tensors import expected_shapes

FORMATS: tuple[QuantizedFormat, ...] = ("Q4_0", "Q4_1", "Q8_0")


class RandomBlocks:
    """The tensors of a model from a fixed seed, its matrices in one format."""

    def __init__(self, config: ModelConfig, form: QuantizedFormat) -> None:
        rng = np.random.default_rng(0)
        number = GGMLQuantizationType[form]
        self._vectors: dict[str, Floats] = {}
        self._matrices: dict[str, Blocks] = {}
        for name, shape in expected_shapes(config).items():
            values = rng.standard_normal(shape, np.float32) / np.sqrt(np.float32(shape[-1]))
            if len(shape) == 1:
                self._vectors[name] = values
            else:
                self._matrices[name] = Blocks(int(number), quantize(values, number), shape)

    def names(self) -> Sequence[str]:
        """List every tensor."""
        return [*self._vectors, *self._matrices]

    def tensor(self, name: str) -> Floats:
        """Give a tensor as fp32."""
        if name in self._vectors:
            return self._vectors[name].copy()
        blocks = self._matrices[name]
        return dequantize(blocks.raw, blocks.kind, blocks.shape)

    def blocks(self, name: str, kinds: Collection[int]) -> Blocks:
        """Give a matrix as it is if its format is one of `kinds`, else as fp32."""
        blocks = self._matrices[name]
        return blocks if blocks.kind in kinds else blocks_of(self.tensor(name))
