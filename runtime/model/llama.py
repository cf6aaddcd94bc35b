"""The Llama family: embedding, layers, norm, head."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ...kernels.linear import Linear, linear, prepare
from ...kernels.norm import rms_norm
from ..cache.kv import KVCache
from .checkpoint import Checkpoint
from .config import ModelConfig
from .host import physical_cores
from .layers import Layer, Step, read_layer, run_layer
from .rope import inverse_frequencies
from .tensors import EMBEDDING, HEAD, NORM, TensorSource


@dataclass(frozen=True, slots=True)
class Llama:
    """The weights of a model, and its forward pass."""

    config: ModelConfig
    embedding: Tensor  # [vocab, hidden]
    layers: tuple[Layer, ...]
    norm: Tensor  # [hidden]
    head: Linear  # [vocab, hidden]
    inv_freq: Tensor  # [head_dim / 2]

    def forward(self, step: Step, cache: KVCache) -> Tensor:
        """Run a batch, filling the cache; fp32 logits of the wanted rows, [r, vocab]."""
        x = torch.embedding(self.embedding, step.token_ids)
        for layer, (k_cache, v_cache) in zip(self.layers, cache.layers, strict=True):
            x = run_layer(x, layer, self.config, step, k_cache, v_cache)
        wanted = x.index_select(0, step.logit_rows)
        return linear(rms_norm(wanted, self.norm, self.config.norm_eps), self.head).float()


def read_llama(
    config: ModelConfig, source: TensorSource, dtype: torch.dtype, device: torch.device
) -> Llama:
    """Read a model from its tensors; several threads call `source.tensor` at once.

    Raises: ModelLoadError, naming tensors that are missing, stray or of the wrong shape.
    """
    checkpoint = Checkpoint(config, source, dtype, device)
    with ThreadPoolExecutor(physical_cores()) as pool:
        layers = tuple(pool.map(partial(read_layer, checkpoint), range(config.num_layers)))
    embedding = checkpoint.read(EMBEDDING)
    return Llama(
        config=config,
        embedding=embedding,
        layers=layers,
        norm=checkpoint.read(NORM),
        head=prepare(embedding if config.is_tied else checkpoint.read(HEAD)),
        inv_freq=torch.from_numpy(inverse_frequencies(config.rope, config.head_dim)).to(device),
    )
