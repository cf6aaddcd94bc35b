"""Logits and greedy text equal those of transformers, which the whole file compares with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor

from plait.runtime.config import EngineConfig
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.load.weights import opened
from plait.runtime.model.config import read_config
from plait.runtime.model.llama import read_llama
from plait.runtime.model.runner import TorchRunner
from plait.runtime.sequence import Batch

pytestmark = pytest.mark.slow  # importing transformers takes seconds

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
VARIANTS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "llama": ("Llama", {}),
    "llama, tied": ("Llama", {"tie_word_embeddings": True}),
    "llama, one KV head": ("Llama", {"num_key_value_heads": 1}),
    "llama, as many KV heads": ("Llama", {"num_key_value_heads": 6}),
    "llama, explicit head size": ("Llama", {"head_dim": 20}),
    "llama, biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, other theta": ("Llama", {"rope_parameters": {"rope_theta": 500.0}}),
    "llama, linear rope": (
        "Llama",
        {"rope_parameters": {"rope_theta": 1e4, "rope_type": "linear", "factor": 4.0}},
    ),
    "llama, llama3 rope": ("Llama", {"rope_parameters": {"rope_theta": 5e5, **LLAMA3}}),
    "qwen2": ("Qwen2", {}),
    "qwen2, tied": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "qwen3, biases": ("Qwen3", {"head_dim": 16, "attention_bias": True}),
    "mistral": ("Mistral", {"sliding_window": None}),
    "mistral, window over the context": ("Mistral", {"sliding_window": 4096}),
    "mistral, window": ("Mistral", {"sliding_window": 50}),
    "qwen2, window": (
        "Qwen2",
        {"sliding_window": 50, "use_sliding_window": True, "max_window_layers": 0},
    ),
}
SHAPE: Mapping[str, object] = {
    "vocab_size": 320,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,  # so that the layers matter
}


class Transformers:
    """A transformers model behind a typed face."""

    def __init__(self, inner: object) -> None:
        self.inner = inner

    def logits(self, tokens: list[int]) -> Tensor:
        with torch.inference_mode():
            output = self.inner(torch.tensor([tokens]))  # type: ignore[operator]
        return cast(Tensor, output.logits[0].float())


def random_model(class_name: str, changes: Mapping[str, object], folder: Path) -> Transformers:
    """Make a model with weights, norms and biases from a fixed seed, and save it."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = getattr(transformers, f"{class_name}Config")(**{**SHAPE, **changes})
    inner = getattr(transformers, f"{class_name}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, parameter in inner.named_parameters():
            if "norm" in name or name.endswith(".bias"):
                parameter.add_(torch.randn_like(parameter) * 0.2)
    inner.save_pretrained(folder)
    return Transformers(inner)


def our_model(path: Path) -> TorchRunner:
    with opened(path) as weights:
        model = read_llama(read_config(weights.config), weights, torch.float32, torch.device("cpu"))
    return TorchRunner(model, EngineConfig(kv_cache_tokens=1024))


def run(runner: TorchRunner, tokens: list[int], begin: int = 0) -> Tensor:
    """Compute tokens from `begin` on, in the first blocks of the pool; logits of each."""
    new, size = len(tokens) - begin, runner.limits.block_size
    return runner.run(
        Batch(
            token_ids=np.array(tokens[begin:], np.int32),
            positions=np.arange(begin, len(tokens), dtype=np.int32),
            slot_mapping=np.arange(begin, len(tokens), dtype=np.int64),
            cu_seqlens=np.array([0, new], np.int32),
            seq_lens=np.array([len(tokens)], np.int32),
            block_tables=np.arange(-(-len(tokens) // size), dtype=np.int32)[None],
            copy_from=np.zeros(0, np.int64),
            copy_to=np.zeros(0, np.int64),
            logit_rows=np.arange(new, dtype=np.int64),
        )
    )


def greedy(runner: TorchRunner, prompt: list[int], count: int) -> list[int]:
    tokens = [*prompt, int(run(runner, prompt)[-1].argmax())]
    while len(tokens) < len(prompt) + count:
        tokens.append(int(run(runner, tokens, len(tokens) - 1)[-1].argmax()))
    return tokens[len(prompt) :]


def is_greedy(oracle: Transformers, prompt: list[int], text: list[int]) -> bool:
    """Say whether `oracle` would have written `text`: each token is its choice after the last."""
    choices = oracle.logits(prompt + text)[len(prompt) - 1 : -1].argmax(-1)
    return bool(choices.tolist() == text)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_random_model_gives_the_same_logits(variant: str, tmp_path: Path) -> None:
    oracle = random_model(*VARIANTS[variant], tmp_path)
    tokens: list[int] = np.random.default_rng(0).integers(0, 320, 200).tolist()
    found, wanted = run(our_model(tmp_path), tokens), oracle.logits(tokens)
    assert float(wanted.std()) > 0.1  # not a model that says nothing
    assert float((found - wanted).abs().max()) < 1e-4


@pytest.mark.parametrize("variant", ["llama", "qwen2", "qwen3", "mistral", "mistral, window"])
def test_a_random_model_gives_the_same_greedy_text(variant: str, tmp_path: Path) -> None:
    oracle = random_model(*VARIANTS[variant], tmp_path)
    prompt: list[int] = np.random.default_rng(1).integers(0, 320, 20).tolist()
    assert is_greedy(oracle, prompt, greedy(our_model(tmp_path), prompt, 32))


@pytest.fixture(scope="module")
def default_model() -> Path:
    stored = Store(default_home()).find(DEFAULT_MODEL)
    if stored is None:
        pytest.skip(f"{DEFAULT_MODEL} is not pulled: run `plait pull {DEFAULT_MODEL}`")
    return stored.path


@pytest.fixture(scope="module")
def default_oracle(default_model: Path) -> Transformers:
    """Read the GGUF with transformers' own reader: names, row order and values are its own."""
    transformers = pytest.importorskip("transformers")
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    path = str(default_model / "model.gguf")
    config = transformers.LlamaConfig(**load_gguf_checkpoint(path)["config"])
    inner = transformers.LlamaForCausalLM(config).eval()
    tensors = load_gguf_checkpoint(path, return_tensors=True, model_to_load=inner)["tensors"]
    left_out = inner.load_state_dict(tensors, strict=False)
    assert left_out.missing_keys == ["lm_head.weight"]  # tied
    assert not left_out.unexpected_keys
    return Transformers(inner)


def test_the_default_model_gives_the_same_logits_and_text(
    default_model: Path, default_oracle: Transformers
) -> None:
    runner = our_model(default_model)
    tokens: list[int] = np.random.default_rng(2).integers(0, 49152, 100).tolist()
    found, wanted = run(runner, tokens), default_oracle.logits(tokens)
    assert float((found - wanted).abs().max()) < 1e-3
    # "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    prompt = [1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198]
    assert is_greedy(default_oracle, prompt, greedy(runner, prompt, 64))
