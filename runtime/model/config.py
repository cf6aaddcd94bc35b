"""A model's shape, read from the keys of Hugging Face's config.json, and refused if unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ..errors import ModelLoadError
from .fields import Fields

Family: TypeAlias = Literal["llama", "qwen2", "qwen3", "mistral"]
RopeKind: TypeAlias = Literal["default", "linear", "llama3"]

ARCHITECTURES: Final[Mapping[str, Family]] = {
    "LlamaForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "MistralForCausalLM": "mistral",
}
# Hugging Face writes a window into every Mistral config; a missing key means this one.
MISTRAL_WINDOW: Final = 4096
QWEN3_HEAD_DIM: Final = 128
QWEN_WHOLE_LAYERS: Final = 28  # the first layers of a Qwen with a window, if its config is silent


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """How positions become angles. The last four numbers are read by some kinds only."""

    theta: float
    kind: RopeKind = "default"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_context: int = 0


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The shape of a model of the Llama family."""

    family: Family
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int  # rows of the embedding, and so the width of the logits
    max_positions: int
    norm_eps: float
    rope: RopeConfig
    is_tied: bool  # True: the head is the embedding
    has_qkv_bias: bool
    has_o_bias: bool
    has_mlp_bias: bool
    has_qk_norm: bool
    sliding_window: int | None  # None: every layer sees the whole context
    num_whole_layers: int = 0  # layers without the window that others have

    def window_of(self, context: int) -> int | None:
        """Give the window that a context of so many tokens is seen through, None for all of it."""
        window = self.sliding_window
        return window if window is not None and window < context else None


def read_config(config: Mapping[str, object]) -> ModelConfig:
    """Read the keys of a config.json.

    Raises: ModelLoadError, naming the key, for what is missing or not supported.
    """
    fields = Fields(config)
    family = _family(fields)
    _refuse_unknown_mathematics(fields)
    hidden, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    kv_heads = fields.integer("num_key_value_heads", heads)
    head_dim = fields.integer(
        "head_dim", QWEN3_HEAD_DIM if family == "qwen3" else _divide(hidden, heads)
    )
    if heads % kv_heads or head_dim % 2:
        raise ModelLoadError(
            f"{heads} heads of size {head_dim} over {kv_heads} KV heads: the heads must be a "
            "multiple of the KV heads and their size even; the config is damaged"
        )
    bias = fields.flag("attention_bias") and family in ("llama", "qwen3")
    window = _window(fields, family)
    return ModelConfig(
        family=family,
        num_layers=fields.integer("num_hidden_layers"),
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate_size=fields.integer("intermediate_size"),
        vocab_size=fields.integer("vocab_size"),
        max_positions=fields.integer("max_position_embeddings"),
        norm_eps=fields.number("rms_norm_eps", 1e-6),
        rope=_rope(fields),
        is_tied=fields.flag("tie_word_embeddings"),
        has_qkv_bias=bias or family == "qwen2",
        has_o_bias=bias,
        has_mlp_bias=fields.flag("mlp_bias") and family == "llama",
        has_qk_norm=family == "qwen3",
        sliding_window=window,
        num_whole_layers=0 if window is None else _num_whole_layers(fields, family),
    )


def _divide(hidden: int, heads: int) -> int:
    if hidden % heads:
        raise ModelLoadError(
            f"hidden_size={hidden} is no multiple of num_attention_heads={heads}, and head_dim "
            "is not given; the config is damaged"
        )
    return hidden // heads


def _family(fields: Fields) -> Family:
    names = fields.texts("architectures")
    model_type = fields.text("model_type", "")
    for name, family in ARCHITECTURES.items():
        if name in names or (not names and family == model_type):
            return family
    raise ModelLoadError(
        f"architecture {', '.join(names) or model_type or 'without a name'} is not supported; "
        f"plait runs {', '.join(ARCHITECTURES)}"
    )


def _refuse_unknown_mathematics(fields: Fields) -> None:
    """Refuse what would change the result if it were ignored."""
    activation = fields.text("hidden_act", "silu")
    if activation not in ("silu", "swish"):
        raise ModelLoadError(f"activation hidden_act={activation!r} is not supported; silu is")
    if fields.section("quantization_config"):
        method = fields.section("quantization_config").text("quant_method", "unknown")
        raise ModelLoadError(
            f"quantization_config: safetensors quantised by {method!r} are not supported; "
            "use the plain weights or a GGUF file"
        )


def _rope(fields: Fields) -> RopeConfig:
    scaling = fields.section("rope_scaling").merged(fields.section("rope_parameters"))
    theta = scaling.number("rope_theta", fields.number("rope_theta", 10000.0))
    if scaling.number("partial_rotary_factor", fields.number("partial_rotary_factor", 1.0)) != 1.0:
        raise ModelLoadError("partial_rotary_factor is not supported; rope must cover whole heads")
    if not scaling:
        return RopeConfig(theta)
    # Configs before transformers 4.43 call it `type`.
    match kind := scaling.text("rope_type", scaling.text("type", "without a type")):
        case "default":
            return RopeConfig(theta)
        case "linear":
            return RopeConfig(theta, "linear", scaling.number("factor"))
        case "llama3":
            return RopeConfig(
                theta,
                "llama3",
                scaling.number("factor"),
                scaling.number("low_freq_factor"),
                scaling.number("high_freq_factor"),
                scaling.integer("original_max_position_embeddings"),
            )
    raise ModelLoadError(
        f"rope_scaling {kind!r} is not supported; plait knows default, linear and llama3"
    )


def _window(fields: Fields, family: Family) -> int | None:
    """Give the window that some layer uses, None where none does."""
    if family in ("llama", "mistral"):
        missing = MISTRAL_WINDOW if family == "mistral" else None
        return missing if "sliding_window" not in fields else fields.optional("sliding_window")
    is_used = fields.flag("use_sliding_window") or "sliding_attention" in fields.texts(
        "layer_types"
    )
    return fields.optional("sliding_window") if is_used else None


def _num_whole_layers(fields: Fields, family: Family) -> int:
    """Count the layers that have no window although the model has one."""
    if kinds := fields.texts("layer_types"):
        return sum(kind != "sliding_attention" for kind in kinds)
    if family in ("llama", "mistral"):
        return 0
    num_layers = fields.integer("num_hidden_layers")
    return min(num_layers, fields.whole("max_window_layers", QWEN_WHOLE_LAYERS))
