"""How the tensors of a file become the weights of torch's layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .config import ModelConfig
from .tensors import TensorSource, account, check_shape, expected_shapes


class Checkpoint:
    """The tensors of one model, each accounted for before any is read.

    Raises: ModelLoadError, listing the tensors that are missing or that the model has no
    place for.
    """

    def __init__(
        self, config: ModelConfig, source: TensorSource, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.config = config
        self._shapes = expected_shapes(config)
        self._source = source
        self._dtype = dtype
        self._device = device
        account(self._shapes, source.names(), config.is_tied)

    def read(self, name: str) -> Tensor:
        """Give one tensor, on the device and in the dtype of the model."""
        return self._checked(name).to(self._device, self._dtype)

    def stack(self, names: Sequence[str]) -> Tensor:
        """Give tensors as one, rows below rows: one product in place of several."""
        if len(names) == 1:
            return self.read(names[0])
        num_rows = sum(self._shapes[name][0] for name in names)
        shape = (num_rows, *self._shapes[names[0]][1:])
        out = torch.empty(shape, dtype=self._dtype, device=self._device)
        begin = 0
        for name in names:
            end = begin + self._shapes[name][0]
            out[begin:end] = self._checked(name)
            begin = end
        return out

    def has(self, name: str) -> bool:
        """Say whether the model has such a tensor."""
        return name in self._shapes

    def _checked(self, name: str) -> Tensor:
        values = self._source.tensor(name)
        check_shape(name, values.shape, self._shapes[name])
        return torch.from_numpy(values)
