"""GGUF metadata in the keys of Hugging Face's config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, TypeVar

import numpy as np

from ..errors import ModelLoadError
from .gguf import GgufFile
from .gguf_names import ARCHITECTURES, ROPE_FACTORS
from .quants import dequantize

_T = TypeVar("_T", int, float, str)

# Keys that change what the model computes, in ways that plait does not.
_UNSUPPORTED = (
    "expert_count",
    "attention.logit_softcapping",
    "final_logit_softcapping",
    "attention.causal",
    "attention.scale",
    "embedding_scale",
    "residual_scale",
    "logit_scale",
)
# The one family of factors in use: Llama 3's, which GGUF stores as a tensor.
_LLAMA3 = {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


class Metadata:
    """Typed look-ups in a GGUF file's metadata; `{arch}.` stands before every key."""

    def __init__(self, file: GgufFile) -> None:
        self.file = file
        name = file.metadata.get("general.architecture")
        if name not in ARCHITECTURES:
            raise ModelLoadError(
                f"{file.path}: architecture {name!r} is not supported; "
                f"GGUF files of {', '.join(ARCHITECTURES)} are"
            )
        self.architecture = str(name)

    def fail(self, problem: str) -> NoReturn:
        """Raise a ModelLoadError that names the file."""
        raise ModelLoadError(f"{self.file.path}: {problem}")

    def get(self, key: str, kind: type[_T]) -> _T | None:
        """Give a value of `kind`, None if the key is absent."""
        key = f"{self.architecture}.{key}"
        value = self.file.metadata.get(key)
        if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
            return value
        if kind is float and isinstance(value, int):
            return kind(value)
        self.fail(f"{key} is {value!r}, not one {kind.__name__}")

    def need(self, key: str, kind: type[_T]) -> _T:
        """Give a value of `kind` that must be there."""
        value = self.get(key, kind)
        if value is None:
            self.fail(f"{self.architecture}.{key} is missing from the metadata")
        return value


def read_config(file: GgufFile) -> dict[str, object]:
    """Give the model's config in Hugging Face's keys.

    Raises: ModelLoadError, naming the key, where the file asks for what is not supported.
    """
    meta = Metadata(file)
    _refuse_unsupported(meta)
    class_name, model_type = ARCHITECTURES[meta.architecture]
    hidden, heads = meta.need("embedding_length", int), meta.need("attention.head_count", int)
    head_dim = _head_dim(meta, hidden, heads)
    config: dict[str, object] = {
        "architectures": [class_name],
        "model_type": model_type,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": meta.need("feed_forward_length", int),
        "num_hidden_layers": meta.need("block_count", int),
        "num_attention_heads": heads,
        "num_key_value_heads": meta.get("attention.head_count_kv", int) or heads,
        "head_dim": head_dim,
        "rms_norm_eps": meta.need("attention.layer_norm_rms_epsilon", float),
        "rope_theta": meta.get("rope.freq_base", float) or 10000.0,
        "rope_scaling": _rope_scaling(meta, head_dim),
        "max_position_embeddings": meta.need("context_length", int),
        "vocab_size": _vocab_size(meta),
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "attention_bias": "blk.0.attn_q.bias" in file.tensors,
        "mlp_bias": "blk.0.ffn_up.bias" in file.tensors,
    }
    if (window := meta.get("attention.sliding_window", int)) is not None:
        config["sliding_window"] = window
    return config


def _refuse_unsupported(meta: Metadata) -> None:
    for key in _UNSUPPORTED:
        value = meta.file.metadata.get(f"{meta.architecture}.{key}")
        if value not in (None, 0, 1.0, True):
            meta.fail(f"{meta.architecture}.{key} = {value!r} is not supported")


def _head_dim(meta: Metadata, hidden: int, heads: int) -> int:
    """Give the size of a head; rotary, key and value size must all be this."""
    if heads < 1:
        meta.fail(f"{meta.architecture}.attention.head_count is {heads}")
    size = meta.get("attention.key_length", int) or hidden // heads
    for key in ("attention.value_length", "rope.dimension_count"):
        other = meta.get(key, int)
        if other is not None and other != size:
            meta.fail(
                f"{meta.architecture}.{key} is {other} and a head has {size}; "
                "models where they differ are not supported"
            )
    return size


def _vocab_size(meta: Metadata) -> int:
    table = meta.file.tensors.get("token_embd.weight")
    if table is None:
        meta.fail("tensor token_embd.weight is missing")
    return table.shape[0]


def _rope_scaling(meta: Metadata, head_dim: int) -> Mapping[str, object] | None:
    kind = meta.get("rope.scaling.type", str)
    if ROPE_FACTORS in meta.file.tensors:
        return _llama3_scaling(meta, head_dim)
    old = meta.get("rope.scale_linear", float)
    if kind in (None, "none"):
        return None if old in (None, 1.0) else {"rope_type": "linear", "factor": old}
    scaling: dict[str, object] = {
        "rope_type": kind,
        "factor": meta.need("rope.scaling.factor", float),
    }
    original = meta.get("rope.scaling.original_context_length", int)
    if original is not None:
        scaling["original_max_position_embeddings"] = original
    attention = meta.get("rope.scaling.attn_factor", float)
    if attention not in (None, 1.0):
        scaling["attention_factor"] = attention
    return scaling


def _llama3_scaling(meta: Metadata, head_dim: int) -> Mapping[str, object]:
    """Find the config whose factors are those of the file's tensor.

    GGUF keeps only the factors; the config's other numbers are the same in every Llama 3.
    """
    record = meta.file.tensors[ROPE_FACTORS]
    found = dequantize(meta.file.raw(ROPE_FACTORS), record.kind, record.shape)
    factor = float(found.max())
    theta = meta.get("rope.freq_base", float) or 10000.0
    if found.shape != (head_dim // 2,) or not np.allclose(
        found, _llama3_factors(factor, theta, head_dim), rtol=1e-3
    ):
        meta.fail(f"the RoPE factors in {ROPE_FACTORS} are not those of Llama 3; not supported")
    return {"rope_type": "llama3", "factor": factor, **_LLAMA3}


def _llama3_factors(factor: float, theta: float, head_dim: int) -> np.ndarray:
    """Give what each frequency is divided by, [head_dim / 2].

    After: `Llama3RotaryEmbedding` of the converter, and Hugging Face's llama3 rope.
    """
    low, high = _LLAMA3["low_freq_factor"], _LLAMA3["high_freq_factor"]
    turns = _LLAMA3["original_max_position_embeddings"] / (
        2 * np.pi * theta ** (np.arange(0, head_dim, 2) / head_dim)
    )
    smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return np.asarray(1 / ((1 - smooth) / factor + smooth))
