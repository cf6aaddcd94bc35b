"""Execute batches on a device."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...kernels.attention import plan_attention
from ...kernels.rope import rotation
from ..cache.kv import KVCache, KVShape
from ..config import EngineConfig
from ..errors import ModelLoadError
from ..sequence import Batch
from .config import ModelConfig
from .host import free_memory_bytes, physical_cores
from .interface import ModelLimits
from .layers import Step
from .llama import Llama

# A pool that nobody sized: so many contexts, and no more than this share of the free memory.
DEFAULT_CONTEXTS = 4
DEFAULT_MEMORY_SHARE = 0.25


class TorchRunner:
    """Runs a model of the Llama family; owns its weights and its KV pool.

    Sets torch's number of threads, once, for the whole process.

    Raises: ModelLoadError for a context or a pool that cannot be had.
    """

    def __init__(self, model: Llama, config: EngineConfig) -> None:
        self._model = model
        self._dtype = model.embedding.dtype
        self._device = model.embedding.device
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


def choose_context(model: ModelConfig, config: EngineConfig) -> int:
    """Give the longest context to serve: the model's, or less if the config says so.

    Raises: ModelLoadError if a layer of the model would not see all of it.
    """
    longest = model.max_positions
    if config.max_context is not None:
        longest = min(longest, config.max_context)
    if longest < 1:
        raise ModelLoadError(f"max_context={longest}: a context has 1 token or more")
    if model.sliding_window is not None and model.sliding_window < longest:
        raise ModelLoadError(
            f"sliding_window={model.sliding_window} is not supported for a context of {longest}; "
            f"set max_context to {model.sliding_window} or less"
        )
    return longest


def limits_of(model: ModelConfig, config: EngineConfig, value_bytes: int) -> ModelLimits:
    """Size the KV pool, in which a number takes `value_bytes`. Raises: ModelLoadError."""
    max_context = choose_context(model, config)
    one = KVShape(model.num_layers, 1, config.block_size, model.num_kv_heads, model.head_dim)
    num_tokens = config.kv_cache_tokens
    if num_tokens is None:
        num_tokens = DEFAULT_CONTEXTS * max_context
        free = _free_bytes(torch.device(config.device))
        if free is not None:
            share = int(free * DEFAULT_MEMORY_SHARE)
            affordable = share // (one.values_per_token * value_bytes)
            num_tokens = max(config.block_size, min(num_tokens, affordable))
    if num_tokens < 1:
        raise ModelLoadError(f"kv_cache_tokens={num_tokens}: the pool needs room for one block")
    return ModelLimits(
        max_context=max_context,
        num_blocks=-(-num_tokens // config.block_size),
        block_size=config.block_size,
        logits_width=model.vocab_size,
    )


def _free_bytes(device: torch.device) -> int | None:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return free_memory_bytes()
