"""Tiny GGUF files for the tests of the readers, written with the gguf package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
import pytest

HIDDEN, INNER, HEADS, KV_HEADS, HEAD_DIM, VOCAB = 32, 64, 4, 2, 8, 300
Arrays = dict[str, npt.NDArray[np.float32]]


def byte_tokens() -> list[str]:
    """Give the 256 characters of GPT-2's alphabet, by byte."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    table = {byte: chr(byte) for byte in shown}
    table.update({byte: chr(0x100 + index) for index, byte in enumerate(hidden)})
    return [table[byte] for byte in range(256)]


def tensors(architecture: str, *, seed: int = 0) -> Arrays:
    """Make one layer of random weights under GGUF's names, in Hugging Face's row order."""
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> npt.NDArray[np.float32]:
        return rng.standard_normal(shape).astype(np.float32)

    arrays = {
        "token_embd.weight": random(VOCAB, HIDDEN),
        "output_norm.weight": random(HIDDEN),
        "blk.0.attn_norm.weight": random(HIDDEN),
        "blk.0.attn_q.weight": random(HEADS * HEAD_DIM, HIDDEN),
        "blk.0.attn_k.weight": random(KV_HEADS * HEAD_DIM, HIDDEN),
        "blk.0.attn_v.weight": random(KV_HEADS * HEAD_DIM, HIDDEN),
        "blk.0.attn_output.weight": random(HIDDEN, HEADS * HEAD_DIM),
        "blk.0.ffn_norm.weight": random(HIDDEN),
        "blk.0.ffn_gate.weight": random(INNER, HIDDEN),
        "blk.0.ffn_up.weight": random(INNER, HIDDEN),
        "blk.0.ffn_down.weight": random(HIDDEN, INNER),
    }
    if architecture == "qwen2":
        arrays["blk.0.attn_q.bias"] = random(HEADS * HEAD_DIM)
    if architecture == "qwen3":
        arrays["blk.0.attn_q_norm.weight"] = random(HEAD_DIM)
        arrays["output.weight"] = random(VOCAB, HIDDEN)
    return arrays


def permute(rows: npt.NDArray[np.float32], num_heads: int) -> npt.NDArray[np.float32]:
    """Order rows as the converter does for llama: `LlamaModel.permute`."""
    return (
        rows.reshape(num_heads, 2, rows.shape[0] // num_heads // 2, *rows.shape[1:])
        .swapaxes(1, 2)
        .reshape(rows.shape)
    )


def write_model(
    path: Path,
    architecture: str = "llama",
    kind: str = "F32",
    *,
    arrays: Arrays | None = None,
    pre: str | None = "smollm",
    model: str = "gpt2",
    vocabulary: Callable[[gguf.GGUFWriter], None] | None = None,
    extra: Callable[[gguf.GGUFWriter], None] | None = None,
) -> Path:
    """Write a model; matrices in `kind`, vectors in F32, q and k permuted for llama."""
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(5e5)
    writer.add_tokenizer_model(model)
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    (vocabulary or write_byte_level)(writer)
    writer.add_bos_token_id(1)
    if extra is not None:
        extra(writer)
    for name, array in (tensors(architecture) if arrays is None else arrays).items():
        _write_tensor(writer, architecture, name, array, gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_tensor(
    writer: gguf.GGUFWriter,
    architecture: str,
    name: str,
    array: npt.NDArray[np.float32],
    kind: gguf.GGMLQuantizationType,
) -> None:
    if architecture == "llama" and name.startswith(("blk.0.attn_q.", "blk.0.attn_k.")):
        array = _permute(array, HEADS if "attn_q" in name else KV_HEADS)
    if array.ndim == 1:
        writer.add_tensor(name, array)
    else:
        writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)


def _permute(rows: npt.NDArray[np.float32], num_heads: int) -> npt.NDArray[np.float32]:
    """Order rows as the converter does for llama: `LlamaModel.permute`."""
    halves = rows.reshape(num_heads, 2, len(rows) // num_heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def write_byte_level(writer: gguf.GGUFWriter) -> None:
    """Add a byte-level BPE: control tokens, bytes, two merges, a user-defined token, padding."""
    tokens = ["<|end|>", "<|user|>", *byte_tokens(), "he", "Ġhe", "<tool>"]
    types = [3, 3, *[1] * 258, 4]
    while len(tokens) < VOCAB:
        types.append(5)
        tokens.append(f"[PAD{len(tokens)}]")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(["h e", "Ġ he"])
    writer.add_eos_token_id(0)
    writer.add_eot_token_id(1)
    writer.add_chat_template("{{ messages[0].content }}")


@pytest.fixture
def write_gguf() -> Callable[..., Path]:
    """Give `write_model`."""
    return write_model


@pytest.fixture
def gguf_tensors() -> Callable[[str], Arrays]:
    """Give `tensors`."""
    return tensors
