"""GGUF's tensor names and row orders, and Hugging Face's."""

from __future__ import annotations

import re
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import ModelLoadError

T = TypeVar("T", bound=np.generic)

# architecture in the file -> (Hugging Face's class, its model_type)
ARCHITECTURES: Final = {
    "llama": ("LlamaForCausalLM", "llama"),
    "qwen2": ("Qwen2ForCausalLM", "qwen2"),
    "qwen3": ("Qwen3ForCausalLM", "qwen3"),
}
# The converter stores these architectures' q and k rows for the interleaved form of RoPE.
# It writes Mistral as llama; Qwen's rows are left as they are.
_PERMUTED: Final = frozenset({"llama"})

_WHOLE: Final = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER: Final = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_IN_LAYER: Final = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")
# Not weights: RoPE's frequency factors, read into the config.
ROPE_FACTORS: Final = "rope_freqs.weight"


def hugging_face_name(name: str) -> str:
    """Give Hugging Face's name of a GGUF tensor.

    Raises: ModelLoadError for a tensor that no supported architecture has.
    """
    if name in _WHOLE:
        return _WHOLE[name]
    match = _IN_LAYER.fullmatch(name)
    if match is None or match[2] not in _LAYER:
        raise ModelLoadError(f"tensor {name} belongs to no supported architecture")
    return f"model.layers.{match[1]}.{_LAYER[match[2]]}.{match[3]}"


def is_permuted(architecture: str, name: str) -> bool:
    """Tell whether the converter changed this GGUF tensor's row order."""
    match = _IN_LAYER.fullmatch(name)
    return architecture in _PERMUTED and match is not None and match[2] in ("attn_q", "attn_k")


def unpermute(rows: npt.NDArray[T], num_heads: int) -> npt.NDArray[T]:
    """Put the rows of a q or k projection back into Hugging Face's order.

    The converter turns each head's rows (first half, second half) into pairs; this is the
    inverse. `rows` is [num_heads * head_dim, ...].
    """
    head_dim = len(rows) // num_heads
    pairs = rows.reshape(num_heads, head_dim // 2, 2, *rows.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)
