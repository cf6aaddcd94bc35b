"""The runner sizes its pool and its context, and refuses what it cannot serve."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from plait.kernels.linear import prepare
from plait.runtime.config import EngineConfig
from plait.runtime.errors import ModelLoadError
from plait.runtime.model import limits as limits_module
from plait.runtime.model.config import ModelConfig, RopeConfig
from plait.runtime.model.limits import choose_context
from plait.runtime.model.llama import Llama
from plait.runtime.model.rope import inverse_frequencies
from plait.runtime.model.runner import TorchRunner
from plait.runtime.sequence import Batch


@pytest.fixture(autouse=True)
def same_number_of_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def shape(
    sliding_window: int | None = None, num_layers: int = 0, num_whole_layers: int = 0
) -> ModelConfig:
    return ModelConfig(
        family="mistral",
        num_layers=num_layers,
        hidden_size=8,
        num_heads=2,
        num_kv_heads=1,
        head_dim=4,
        intermediate_size=8,
        vocab_size=11,
        max_positions=100,
        norm_eps=1e-6,
        rope=RopeConfig(10000.0),
        is_tied=True,
        has_qkv_bias=False,
        has_o_bias=False,
        has_mlp_bias=False,
        has_qk_norm=False,
        sliding_window=sliding_window,
        num_whole_layers=num_whole_layers,
    )


def no_layers(config: ModelConfig) -> Llama:
    table = torch.eye(11, 8)
    freq = torch.from_numpy(inverse_frequencies(config.rope, 4))
    return Llama(config, table, (), torch.ones(8), prepare(table), freq)


def limits_of(config: EngineConfig) -> tuple[int, int, int]:
    limits = TorchRunner(no_layers(shape(num_layers=1)), config).limits
    return limits.max_context, limits.num_blocks, limits.block_size


def test_the_context_is_the_smaller_of_the_models_and_the_configs() -> None:
    assert choose_context(shape(), EngineConfig()) == 100
    assert choose_context(shape(), EngineConfig(max_context=40)) == 40
    assert choose_context(shape(), EngineConfig(max_context=4000)) == 100


def test_a_window_of_some_layers_is_refused_where_it_would_act() -> None:
    mixed = shape(64, num_layers=3, num_whole_layers=1)
    with pytest.raises(ModelLoadError, match=r"sliding_window=64 of some.*max_context to 64"):
        choose_context(mixed, EngineConfig())
    assert choose_context(mixed, EngineConfig(max_context=64)) == 64
    assert choose_context(shape(100, 3, 1), EngineConfig()) == 100
    assert choose_context(shape(64, num_layers=3), EngineConfig()) == 100


def test_a_window_acts_in_a_longer_context_alone() -> None:
    assert shape(64).window_of(65) == 64
    assert shape(64).window_of(64) is None
    assert shape().window_of(65) is None


@pytest.mark.parametrize("block_size", [1, 16, 64])
def test_a_pool_holds_what_was_asked_in_whole_blocks(block_size: int) -> None:
    config = EngineConfig(block_size=block_size, kv_cache_tokens=130)
    assert limits_of(config)[1:] == (-(-130 // block_size), block_size)


def test_threads_are_as_configured() -> None:
    limits_of(EngineConfig(kv_cache_tokens=16, num_threads=1))
    assert torch.get_num_threads() == 1


def test_read_only_arrays_are_taken_without_a_warning() -> None:
    ids = np.array([3, 4], np.int32)
    rows = np.array([0, 1], np.int64)
    none = np.zeros(0, np.int64)
    for array in (ids, rows, none):
        array.flags.writeable = False
    batch = Batch(
        token_ids=ids,
        positions=np.array([0, 1], np.int32),
        slot_mapping=rows,
        cu_seqlens=np.array([0, 2], np.int32),
        seq_lens=np.array([2], np.int32),
        block_tables=np.array([[0]], np.int32),
        copy_from=none,
        copy_to=none,
        logit_rows=rows,
    )
    logits = TorchRunner(no_layers(shape()), EngineConfig(kv_cache_tokens=16)).run(batch)
    assert logits.argmax(-1).tolist() == [3, 4]


@pytest.mark.parametrize(
    ("free_bytes", "num_blocks"), [(None, 20), (10**9, 20), (12_800, 7), (0, 1)]
)
def test_without_a_size_the_pool_holds_four_contexts_or_a_quarter_of_the_memory(
    free_bytes: int | None, num_blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_module, "free_memory_bytes", lambda: free_bytes)
    assert limits_of(EngineConfig(max_context=80))[1] == num_blocks  # 32 bytes a token
