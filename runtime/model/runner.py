"""Execute batches on a device."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...kernels.attention import plan_attention
from ...kernels.rope import rotation
from ..cache.kv import KVCache, KVShape
from ..config import EngineConfig
from ..sequence import Batch
from .host import physical_cores
from .interface import ModelLimits
from .layers import Step
from .limits import limits_of
from .llama import Llama


class TorchRunner:
    """Runs a model of the Llama family; owns its weights and its KV pool.

    Sets torch's number of threads, once, for the whole process.

    Raises: ModelLoadError for a context or a pool that cannot be had.
    """

    largest_ids: Sequence[int] = ()  # not known

    def __init__(self, model: Llama, config: EngineConfig) -> None:
        self._model = model
        self._dtype = model.dtype
        self._device = model.device
        self._block_size = config.block_size
        self._limits = limits_of(model.config, config, self._dtype.itemsize)
        shape = KVShape(
            model.config.num_layers,
            self._limits.num_blocks,
            config.block_size,
            model.config.num_kv_heads,
            model.config.head_dim,
        )
        self._cache = KVCache(shape, self._dtype, self._device)
        if config.num_threads is not None:
            torch.set_num_threads(config.num_threads)
        elif "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(physical_cores())

    @property
    def limits(self) -> ModelLimits:
        """Numbers the scheduler must know."""
        return self._limits

    @property
    def cache(self) -> KVCache:
        """The KV pool."""
        return self._cache

    @torch.inference_mode()
    def run(self, batch: Batch) -> Tensor:
        """Compute one forward pass; give fp32 logits of `batch.logit_rows`, [r, width]."""
        return self._model.forward(self._step(batch), self._cache)

    def _step(self, batch: Batch) -> Step:
        """Turn a batch into tensors, with all that the layers share."""
        plan = plan_attention(
            _host_tensor(batch.cu_seqlens),
            _host_tensor(batch.seq_lens),
            _host_tensor(batch.block_tables),
            block_size=self._block_size,
            dtype=self._dtype,
            device=self._device,
            window=self._model.config.window_of(self._limits.max_context),
        )
        return Step(
            token_ids=self._tensor(batch.token_ids),
            turn=rotation(self._tensor(batch.positions), self._model.inv_freq, self._dtype),
            plan=plan,
            slot_mapping=self._tensor(batch.slot_mapping),
            copy_from=self._tensor(batch.copy_from),
            copy_to=self._tensor(batch.copy_to),
            logit_rows=self._tensor(batch.logit_rows),
        )

    def _tensor(self, array: npt.NDArray[np.integer]) -> Tensor:
        return _host_tensor(array).to(self._device)


def _host_tensor(array: npt.NDArray[np.integer]) -> Tensor:
    # A copy: the engine may reuse its arrays, and torch warns of read-only ones.
    return torch.from_numpy(np.array(array, dtype=np.int64))
