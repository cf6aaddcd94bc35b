"""How the tensors of a file become the weights of torch's layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ...kernels.linear import AnyLinear, QuantizedFormat, QuantizedLinear, from_blocks, prepare
from ..load.blocks import Blocks
from ..load.quants import F32, dequantize
from .config import ModelConfig
from .tensors import BlockSource, account, check_shape, expected_shapes

# GGML's numbers of the formats that products read as they are.
_QUANTIZED: Final[Mapping[int, QuantizedFormat]] = {2: "Q4_0", 3: "Q4_1", 8: "Q8_0"}


class Checkpoint:
    """The tensors of one model, each accounted for before any is read.

    With `is_quantized` matrices in one of the formats that the products know stay in it; else
    all are decoded to `dtype`.

    Raises: ModelLoadError, listing the tensors that are missing or that the model has no
    place for.
    """

    def __init__(
        self,
        config: ModelConfig,
        source: BlockSource,
        dtype: torch.dtype,
        device: torch.device,
        *,
        is_quantized: bool = False,
    ) -> None:
        self.config = config
        self._shapes = expected_shapes(config)
        self._source = source
        self._dtype = dtype
        self._device = device
        self._kept = _QUANTIZED if is_quantized else {}
        account(self._shapes, source.names(), config.is_tied)

    def read(self, name: str) -> Tensor:
        """Give one tensor, on the device and in the dtype of the model."""
        values = self._source.tensor(name)
        check_shape(name, values.shape, self._shapes[name])
        return torch.from_numpy(values).to(self._device, self._dtype)

    def table(self, name: str) -> Tensor | QuantizedLinear:
        """Give one matrix, quantised if it may stay so."""
        blocks = self._blocks(name)
        if blocks.kind in self._kept:
            return self._quantized([blocks], None)
        return _decoded(blocks).to(self._device, self._dtype)

    def linear(self, names: Sequence[str]) -> AnyLinear:
        """Give matrices `names` as one layer, rows below rows: one product in place of several.

        Each is `name.weight`, and `name.bias` where the model has it. The layer is quantised if
        all of them may stay so, in the same format.
        """
        bias = None
        if f"{names[0]}.bias" in self._shapes:
            bias = torch.cat([self.read(f"{name}.bias") for name in names])
        weights = [f"{name}.weight" for name in names]
        blocks = map(self._blocks, weights)
        first = next(blocks)
        if first.kind not in self._kept:
            # One after the other: decoded they take much memory.
            return prepare(self._stack(weights, chain((first,), blocks)), bias)
        found = [first, *blocks]
        if all(other.kind == first.kind for other in found):
            return self._quantized(found, bias)
        return prepare(self._stack(weights, found), bias)

    def _blocks(self, name: str) -> Blocks:
        blocks = self._source.blocks(name, self._kept)
        check_shape(name, blocks.shape, self._shapes[name])
        return blocks

    def _quantized(self, blocks: Sequence[Blocks], bias: Tensor | None) -> QuantizedLinear:
        raw = torch.from_numpy(np.concatenate([one.raw for one in blocks]))
        return from_blocks(raw.to(self._device), _QUANTIZED[blocks[0].kind], bias)

    def _stack(self, names: Sequence[str], parts: Iterable[Blocks]) -> Tensor:
        """Decode matrices, rows below rows."""
        num_rows = [self._shapes[name][0] for name in names]
        shape = (sum(num_rows), self._shapes[names[0]][1])
        out = torch.empty(shape, dtype=self._dtype, device=self._device)
        for rows, blocks in zip(out.split_with_sizes(num_rows), parts, strict=True):
            rows.copy_(_decoded(blocks))
        return out


def _decoded(blocks: Blocks) -> Tensor:
    if blocks.kind == F32:  # a large copy less
        return torch.from_numpy(blocks.raw.view(np.float32).reshape(blocks.shape))
    return torch.from_numpy(dequantize(blocks.raw, blocks.kind, blocks.shape))
