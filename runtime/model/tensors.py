"""Which tensors a model of the Llama family has."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from ..errors import ModelLoadError
from ..load.blocks import Blocks
from ..load.quants import Floats
from .config import ModelConfig

Shape: TypeAlias = tuple[int, ...]

# Buffers that old checkpoints carry and that the config gives as well.
TOLERATED: Final = (re.compile(r".*\.rotary_emb\.inv_freq"),)
EMBEDDING: Final = "model.embed_tokens.weight"
HEAD: Final = "lm_head.weight"
NORM: Final = "model.norm.weight"
MAX_LISTED: Final = 8


class TensorSource(Protocol):
    """Tensors by name, as `open_weights` gives them."""

    def names(self) -> Sequence[str]:
        """List every tensor."""
        ...

    def tensor(self, name: str) -> Floats:
        """Give a tensor as fp32, a fresh copy; may be called from several threads."""
        ...


class BlockSource(TensorSource, Protocol):
    """Tensors by name, the matrices also in the number format of their file."""

    def blocks(self, name: str, kinds: Collection[int]) -> Blocks:
        """Give a matrix as it is stored if its format is one of `kinds`, else as fp32."""
        ...


def expected_shapes(config: ModelConfig) -> dict[str, Shape]:
    """Give name and shape of every tensor that the model has."""
    shapes: dict[str, Shape] = {
        EMBEDDING: (config.vocab_size, config.hidden_size),
        NORM: (config.hidden_size,),
    }
    if not config.is_tied:
        shapes[HEAD] = (config.vocab_size, config.hidden_size)
    layer = _layer_shapes(config)
    for index in range(config.num_layers):
        shapes |= {f"model.layers.{index}.{name}": shape for name, shape in layer.items()}
    return shapes


def _layer_shapes(config: ModelConfig) -> dict[str, Shape]:
    hidden, inner, dim = config.hidden_size, config.intermediate_size, config.head_dim
    q, kv = config.num_heads * dim, config.num_kv_heads * dim
    projections = {  # name -> (out, in, has a bias)
        "self_attn.q_proj": (q, hidden, config.has_qkv_bias),
        "self_attn.k_proj": (kv, hidden, config.has_qkv_bias),
        "self_attn.v_proj": (kv, hidden, config.has_qkv_bias),
        "self_attn.o_proj": (hidden, q, config.has_o_bias),
        "mlp.gate_proj": (inner, hidden, config.has_mlp_bias),
        "mlp.up_proj": (inner, hidden, config.has_mlp_bias),
        "mlp.down_proj": (hidden, inner, config.has_mlp_bias),
    }
    shapes: dict[str, Shape] = {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
    }
    for name, (num_out, num_in, has_bias) in projections.items():
        shapes[f"{name}.weight"] = (num_out, num_in)
        if has_bias:
            shapes[f"{name}.bias"] = (num_out,)
    if config.has_qk_norm:
        shapes |= {"self_attn.q_norm.weight": (dim,), "self_attn.k_norm.weight": (dim,)}
    return shapes


def account(shapes: Mapping[str, Shape], names: Sequence[str], is_tied: bool) -> None:
    """Check that a file has the tensors of a model and no others. Raises: ModelLoadError."""
    found = set(names)
    if missing := [name for name in shapes if name not in found]:
        raise ModelLoadError(
            f"{len(missing)} of {len(shapes)} tensors are missing: {_listed(missing)}; "
            "the files are not complete, fetch them again"
        )
    stray = [name for name in sorted(found - shapes.keys()) if not _is_tolerated(name, is_tied)]
    if stray:
        raise ModelLoadError(
            f"{len(stray)} tensors have no place in the model: {_listed(stray)}; "
            "the config does not describe these weights"
        )


def check_shape(name: str, found: Shape, wanted: Shape) -> None:
    """Check that a tensor has the shape that the config asks for. Raises: ModelLoadError."""
    if found != wanted:
        raise ModelLoadError(
            f"tensor {name} has shape {found} and the config asks for {wanted}; "
            "weights and config do not belong together"
        )


def _is_tolerated(name: str, is_tied: bool) -> bool:
    if name == HEAD:
        return is_tied
    return any(pattern.fullmatch(name) for pattern in TOLERATED)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more
