"""A model whose weights stay quantised computes what it computes with them decoded."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest
import torch

from plait.kernels.linear import Linear, QuantizedLinear, embedding
from plait.kernels.linear.reference import dequantize
from plait.runtime.config import EngineConfig
from plait.runtime.load.blocks import Blocks, blocks_of
from plait.runtime.model import on_torch
from plait.runtime.model.config import read_config
from plait.runtime.model.llama import Llama, read_llama
from plait.runtime.model.runner import TorchRunner

from .player import Player, QuantizedWeights, some_tokens

CPU = torch.device("cpu")
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 320,
    "max_position_embeddings": 512,
}
QWEN = {**LLAMA, "architectures": ["Qwen3ForCausalLM"], "attention_bias": True}


def model(source: QuantizedWeights, *, is_quantized: bool, **changes: object) -> Llama:
    shape = read_config({**LLAMA, **changes})
    return read_llama(shape, source, torch.float32, CPU, is_quantized=is_quantized)


def error(one: Llama, other: Llama) -> float:
    """Give the relative error of the logits of some tokens."""
    options, tokens = EngineConfig(num_threads=1, kv_cache_tokens=256), some_tokens(40)
    found, wanted = (Player(TorchRunner(m, options)).chunked(tokens, 16) for m in (one, other))
    return float((found - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("form", ["Q4_0", "Q4_1", "Q8_0"])
@pytest.mark.parametrize("changes", [{}, QWEN, {"tie_word_embeddings": True}])
def test_logits_are_those_of_the_decoded_weights(form: str, changes: dict[str, object]) -> None:
    source = QuantizedWeights(read_config({**LLAMA, **changes}), form)
    kept = model(source, is_quantized=True, **changes)
    layer = kept.layers[0]
    for part in (layer.qkv, layer.o, layer.gate_up, layer.down, kept.head, kept.embedding):
        assert isinstance(part, QuantizedLinear)
    # fp32 sums in another order, through two layers.
    assert error(kept, model(source, is_quantized=False, **changes)) < 1e-5


def test_a_tied_head_is_the_embedding_itself() -> None:
    tied = {"tie_word_embeddings": True}
    kept = model(QuantizedWeights(read_config({**LLAMA, **tied})), is_quantized=True, **tied)
    assert kept.head is kept.embedding


def test_a_format_without_a_product_is_decoded() -> None:
    source = QuantizedWeights(read_config(LLAMA), "Q5_0")
    kept = model(source, is_quantized=True)
    assert isinstance(kept.layers[0].qkv, Linear)
    assert isinstance(kept.embedding, torch.Tensor)
    assert error(kept, model(source, is_quantized=False)) == 0.0


class MixedWeights(QuantizedWeights):
    """Weights of which those whose names have `part` are not quantised in the file."""

    def __init__(self, part: str) -> None:
        super().__init__(read_config(LLAMA), "Q8_0")
        self._part = part

    def blocks(self, name: str, kinds: Collection[int]) -> Blocks:
        return blocks_of(self.tensor(name)) if self._part in name else super().blocks(name, kinds)


@pytest.mark.parametrize("part", ["q_proj", "v_proj"])
def test_matrices_of_different_formats_are_decoded_together(part: str) -> None:
    source = MixedWeights(part)
    kept = model(source, is_quantized=True)
    assert isinstance(kept.layers[0].qkv, Linear)
    assert isinstance(kept.layers[0].o, QuantizedLinear)
    assert error(kept, model(source, is_quantized=False)) < 1e-5


@pytest.mark.parametrize("form", ["Q4_0", "Q4_1", "Q8_0"])
def test_an_embedding_is_decoded_row_by_row(form: str) -> None:
    table = model(QuantizedWeights(read_config(LLAMA), form), is_quantized=True).embedding
    assert isinstance(table, QuantizedLinear)
    ids = torch.tensor([7, 0, 319, 7], dtype=torch.int32)
    rows = embedding(table, ids, torch.bfloat16)
    assert torch.equal(rows, dequantize(table)[ids.long()].bfloat16())


def test_biases_of_stacked_matrices_keep_their_order() -> None:
    source = QuantizedWeights(read_config(QWEN))
    qkv = model(source, is_quantized=True, **QWEN).layers[1].qkv
    biases = [source.tensor(f"model.layers.1.self_attn.{name}_proj.bias") for name in "qkv"]
    assert qkv.bias is not None
    assert torch.equal(qkv.bias, torch.from_numpy(np.concatenate(biases)))


@pytest.mark.parametrize(
    ("has_kernels", "is_quantized", "kind"),
    [(True, True, QuantizedLinear), (True, False, Linear), (False, True, Linear)],
)
def test_only_the_kernels_of_gpus_read_them_and_only_if_wanted(
    has_kernels: bool, is_quantized: bool, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Llama] = []
    for name in ("CudaRunner", "TorchRunner"):
        monkeypatch.setattr(on_torch, name, lambda llama, config: made.append(llama))
    monkeypatch.setattr(on_torch, "uses_triton", lambda tensor: has_kernels)
    shape = read_config(LLAMA)
    config = EngineConfig(is_quantized=is_quantized)
    on_torch.torch_runner(shape, QuantizedWeights(shape), config)
    assert isinstance(made[0].layers[0].qkv, kind)
