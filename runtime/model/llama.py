"""The Llama family: embedding, layers, norm, head."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ...kernels.linear import AnyLinear, QuantizedLinear, embedding, linear, prepare
from ...kernels.norm import rms_norm
from ..cache.kv import KVCache
from .checkpoint import Checkpoint
from .config import ModelConfig
from .host import physical_cores
from .layers import Layer, Step, read_layer, run_layer
from .rope import inverse_frequencies
from .tensors import EMBEDDING, HEAD, NORM, BlockSource


@dataclass(frozen=True, slots=True)
class Llama:
    """The weights of a model, and its forward pass."""

    config: ModelConfig
    embedding: Tensor | QuantizedLinear  # [vocab, hidden]
    layers: tuple[Layer, ...]
    norm: Tensor  # [hidden]
    head: AnyLinear  # [vocab, hidden]
    inv_freq: Tensor  # [head_dim / 2]

    @property
    def dtype(self) -> torch.dtype:
        """What the model computes in."""
        return self.norm.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return self.norm.device

    def forward(self, step: Step, cache: KVCache) -> Tensor:
        """Run a batch, filling the cache; fp32 logits of the wanted rows, [r, vocab]."""
        x = embedding(self.embedding, step.token_ids, self.dtype)
        for layer, (k_cache, v_cache) in zip(self.layers, cache.layers, strict=True):
            x = run_layer(x, layer, self.config, step, k_cache, v_cache)
        wanted = x.index_select(0, step.logit_rows)
        return linear(rms_norm(wanted, self.norm, self.config.norm_eps), self.head).float()


def read_llama(
    config: ModelConfig,
    source: BlockSource,
    dtype: torch.dtype,
    device: torch.device,
    *,
    is_quantized: bool = False,
) -> Llama:
    """Read a model from its tensors; several threads ask `source` at once.

    With `is_quantized` weights stay in the numbers of their file if there is a product for them.

    Raises: ModelLoadError, naming tensors that are missing, stray or of the wrong shape.
    """
    checkpoint = Checkpoint(config, source, dtype, device, is_quantized=is_quantized)
    with ThreadPoolExecutor(physical_cores()) as pool:
        layers = tuple(pool.map(partial(read_layer, checkpoint), range(config.num_layers)))
    table = checkpoint.table(EMBEDDING)
    head = table if config.is_tied else checkpoint.table(HEAD)
    return Llama(
        config=config,
        embedding=table,
        layers=layers,
        norm=checkpoint.read(NORM),
        head=head if isinstance(head, QuantizedLinear) else prepare(head),
        inv_freq=torch.from_numpy(inverse_frequencies(config.rope, config.head_dim)).to(device),
    )
