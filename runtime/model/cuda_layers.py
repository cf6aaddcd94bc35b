"""The forward pass of the Llama family in fused kernels, for GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ...kernels import kv
from ...kernels.activation import silu_mul
from ...kernels.attention import GpuPlan, paged_attention
from ...kernels.linear import embedding, linear
from ...kernels.norm import add_rms_norm, rms_norm
from ...kernels.rope import rope_and_store
from ..cache.kv import KVCache
from .config import ModelConfig
from .layers import Layer
from .llama import Llama


@dataclass(frozen=True, slots=True)
class CudaStep:
    """A batch as tensors on the device."""

    token_ids: Tensor  # [T]
    positions: Tensor  # [T]
    slot_mapping: Tensor  # [T]
    copy_from: Tensor  # [c]
    copy_to: Tensor  # [c]
    logit_rows: Tensor | None  # [r]; None: every row
    plan: GpuPlan


def forward(model: Llama, step: CudaStep, cache: KVCache) -> Tensor:
    """Run a batch, filling the cache; fp32 logits of the wanted rows, [r, vocab].

    Only launches: nothing here waits for the device.
    """
    eps = model.config.norm_eps
    norms = [*(layer.input_norm for layer in model.layers), model.norm]
    residual = embedding(model.embedding, step.token_ids, model.dtype)
    normed = rms_norm(residual, norms[0], eps)
    for layer, caches, next_norm in zip(model.layers, cache.layers, norms[1:], strict=True):
        mixed = _attention(normed, layer, model, step, caches)
        normed = add_rms_norm(mixed, residual, layer.post_norm, eps)
        activated = silu_mul(linear(normed, layer.gate_up))
        normed = add_rms_norm(linear(activated, layer.down), residual, next_norm, eps)
    wanted = normed if step.logit_rows is None else normed.index_select(0, step.logit_rows)
    return linear(wanted, model.head).float()


def _attention(
    x: Tensor, layer: Layer, model: Llama, step: CudaStep, caches: tuple[Tensor, Tensor]
) -> Tensor:
    config = model.config
    qkv = linear(x, layer.qkv).view(len(x), -1, config.head_dim)
    if layer.qk_norm is not None:
        _norm_heads(qkv, layer.qk_norm, config)
    k_cache, v_cache = caches
    q = rope_and_store(qkv, step.positions, model.inv_freq, k_cache, v_cache, step.slot_mapping)
    # After the store and before the read: a block may be shared within this very pass.
    if len(step.copy_from):
        kv.copy(k_cache, v_cache, step.copy_from, step.copy_to)
    out = paged_attention(q, k_cache, v_cache, step.plan, config.head_dim**-0.5)
    return linear(out.view(len(x), -1), layer.o)


def _norm_heads(qkv: Tensor, weight: Tensor, config: ModelConfig) -> None:
    """Norm each head of q and k in place."""
    heads = qkv[:, : config.num_heads + config.num_kv_heads]
    heads.copy_(rms_norm(heads, weight, config.norm_eps))
