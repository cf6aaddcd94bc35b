"""A folder becomes a model ready to serve, or an error that names folder and fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.kernels.native import why_absent
from plait.runtime.config import EngineConfig
from plait.runtime.errors import ModelLoadError
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.model.registry import load_model

from .tiny import write_config, write_folder

ENGINE = EngineConfig(kv_cache_tokens=64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a Hugging Face folder."""
    write_folder(tmp_path)
    return tmp_path


def test_a_folder_is_loaded_with_its_numbers(folder: Path) -> None:
    model = load_model(folder, ENGINE)
    limits = model.runner.limits
    assert (limits.max_context, limits.num_blocks, limits.block_size) == (64, 4, 16)
    assert limits.logits_width == 320
    assert model.tokenizer.vocab_size == 259
    assert model.name == folder.name


def test_the_digest_names_weights_and_dtype(folder: Path) -> None:
    first = load_model(folder, ENGINE).digest
    assert load_model(folder, ENGINE).digest == first
    assert load_model(folder, EngineConfig(kv_cache_tokens=64, dtype="bfloat16")).digest != first


def test_the_context_may_be_cut(folder: Path) -> None:
    config = EngineConfig(kv_cache_tokens=64, max_context=20)
    assert load_model(folder, config).runner.limits.max_context == 20


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"architectures": ["GemmaForCausalLM"]}, "GemmaForCausalLM"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "yarn"),
        ({"num_hidden_layers": 3}, "model.layers.2"),
        ({"num_hidden_layers": 1}, "model.layers.1"),
        ({"intermediate_size": 16}, "mlp.gate_proj.weight"),
        ({"vocab_size": 200}, "200"),
        ({"quantization_config": {"quant_method": "awq"}}, "awq"),
    ],
)
def test_a_fault_is_named_with_its_folder(
    folder: Path, changes: dict[str, object], named: str
) -> None:
    write_config(folder, **changes)
    with pytest.raises(ModelLoadError) as caught:
        load_model(folder, ENGINE)
    assert named in str(caught.value)
    assert str(folder) in str(caught.value)


def test_a_window_runs_on_torch_and_the_log_says_why(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_config(folder, architectures=["MistralForCausalLM"], sliding_window=20)
    with caplog.at_level("WARNING"):
        runner = load_model(folder, ENGINE).runner
    assert type(runner).__name__ == "TorchRunner"
    assert why_absent() or "no sliding_window, and the model's is 20" in caplog.text


def test_a_device_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(ModelLoadError, match="cuda:99"):
        load_model(folder, EngineConfig(device="cuda:99"))


@pytest.mark.slow
def test_the_default_model_is_loaded_in_its_own_numbers() -> None:
    stored = Store(default_home()).find(DEFAULT_MODEL)
    if stored is None:
        pytest.skip(f"{DEFAULT_MODEL} is not pulled: run `plait pull {DEFAULT_MODEL}`")
    model = load_model(stored.path, EngineConfig())
    assert model.runner.limits.max_context == 8192
    assert model.runner.limits.logits_width == model.tokenizer.vocab_size == 49152
    assert model.tokenizer.chat_template is not None
