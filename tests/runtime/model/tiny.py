"""A tiny model's folder, as Hugging Face writes it."""

from __future__ import annotations

import json
from pathlib import Path

import tokenizers
import torch
from safetensors.torch import save_file

from plait.runtime.model.config import read_config
from plait.runtime.model.tensors import expected_shapes

CONFIG: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 320,
    "max_position_embeddings": 64,
}


def write_config(folder: Path, **changes: object) -> None:
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}))


def write_folder(folder: Path, **changes: object) -> None:
    """Write random weights, and a byte-level tokenizer of 259 ids under 320 rows."""
    write_config(folder, **changes)
    torch.manual_seed(0)
    shapes = expected_shapes(read_config({**CONFIG, **changes}))
    tensors = {name: torch.randn(shape) for name, shape in shapes.items()}
    save_file(tensors, folder / "model.safetensors")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab = {letter: index for index, letter in enumerate(alphabet)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, []))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>", "<|a|>", "<|b|>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>"}))
