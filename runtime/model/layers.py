"""One layer of the Llama family, as functions over its weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ...kernels import kv
from ...kernels.attention import AttentionPlan, paged_attention
from ...kernels.linear import AnyLinear, linear
from ...kernels.norm import rms_norm
from ...kernels.rope import Rotation, apply_rope
from .checkpoint import Checkpoint
from .config import ModelConfig


@dataclass(frozen=True, slots=True)
class Layer:
    """The weights of one layer; q, k and v are one matrix, and so are gate and up."""

    input_norm: Tensor  # [hidden]
    qkv: AnyLinear  # [(H + 2 KVH) * D, hidden]
    qk_norm: Tensor | None  # [H + KVH, D]
    o: AnyLinear
    post_norm: Tensor  # [hidden]
    gate_up: AnyLinear  # [2 * intermediate, hidden]
    down: AnyLinear


@dataclass(frozen=True, slots=True)
class Step:
    """A batch as tensors: all that does not depend on the layer, found once."""

    token_ids: Tensor  # [T]
    turn: Rotation
    plan: AttentionPlan
    slot_mapping: Tensor  # [T]
    copy_from: Tensor  # [c]
    copy_to: Tensor  # [c]
    logit_rows: Tensor  # [r]


def read_layer(checkpoint: Checkpoint, index: int) -> Layer:
    """Read the weights of one layer."""
    at, config = f"model.layers.{index}.", checkpoint.config

    def joined(*names: str) -> AnyLinear:
        return checkpoint.linear([f"{at}{name}" for name in names])

    qk_norm = None
    if config.has_qk_norm:
        q = checkpoint.read(f"{at}self_attn.q_norm.weight").expand(config.num_heads, -1)
        k = checkpoint.read(f"{at}self_attn.k_norm.weight").expand(config.num_kv_heads, -1)
        qk_norm = torch.cat((q, k))
    return Layer(
        input_norm=checkpoint.read(f"{at}input_layernorm.weight"),
        qkv=joined("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        qk_norm=qk_norm,
        o=joined("self_attn.o_proj"),
        post_norm=checkpoint.read(f"{at}post_attention_layernorm.weight"),
        gate_up=joined("mlp.gate_proj", "mlp.up_proj"),
        down=joined("mlp.down_proj"),
    )


def run_layer(
    x: Tensor, layer: Layer, config: ModelConfig, step: Step, k_cache: Tensor, v_cache: Tensor
) -> Tensor:
    """Pass hidden states `x` [T, hidden] through one layer; its K and V go into the caches."""
    normed = rms_norm(x, layer.input_norm, config.norm_eps)
    x = x + _attention(normed, layer, config, step, k_cache, v_cache)
    normed = rms_norm(x, layer.post_norm, config.norm_eps)
    gate, up = linear(normed, layer.gate_up).chunk(2, dim=-1)
    return x + linear(F.silu(gate).mul_(up), layer.down)


def _attention(
    x: Tensor, layer: Layer, config: ModelConfig, step: Step, k_cache: Tensor, v_cache: Tensor
) -> Tensor:
    heads, kv_heads = config.num_heads, config.num_kv_heads
    qkv = linear(x, layer.qkv).view(len(x), -1, config.head_dim)
    qk, v = qkv[:, : heads + kv_heads], qkv[:, heads + kv_heads :]
    if layer.qk_norm is not None:
        qk = rms_norm(qk, layer.qk_norm, config.norm_eps)
    qk = apply_rope(qk, step.turn)
    q, k = qk[:, :heads], qk[:, heads:]
    kv.store(k, v, k_cache, v_cache, step.slot_mapping)
    # After the store and before the read: a block may be shared within this very pass.
    if len(step.copy_from):
        kv.copy(k_cache, v_cache, step.copy_from, step.copy_to)
    out = paged_attention(q, k_cache, v_cache, step.plan, config.head_dim**-0.5)
    return linear(out.view(len(x), -1), layer.o)
