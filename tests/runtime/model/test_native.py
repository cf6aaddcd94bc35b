"""A model on the compiled kernels gives what the torch model gives, alone and in company."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from plait.kernels.native import load_library
from plait.kernels.sampling import NOT_FINITE
from plait.runtime.config import EngineConfig
from plait.runtime.model.config import ModelConfig, read_config
from plait.runtime.model.llama import read_llama
from plait.runtime.model.native import NativeRunner
from plait.runtime.model.native_weights import is_native, read_native
from plait.runtime.model.runner import TorchRunner

from .player import Player, QuantizedWeights, RandomWeights, Seq, close, mixed_run, some_tokens

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 320,
    "max_position_embeddings": 512,
}
QWEN = {**CONFIG, "architectures": ["Qwen3ForCausalLM"], "attention_bias": True}


def native(
    block_size: int = 16,
    *,
    is_exact: bool = True,
    make_weights: Callable[[ModelConfig], RandomWeights] | None = None,
    **changes: Any,
) -> NativeRunner:
    library = load_library()
    if library is None:
        pytest.skip("plait was installed without a C++ compiler")
    shape = read_config({**CONFIG, **changes})
    options = EngineConfig(
        block_size=block_size, num_threads=2, is_exact=is_exact, kv_cache_tokens=2048
    )
    make = make_weights or (RandomWeights if is_exact else QuantizedWeights)
    return NativeRunner(read_native(shape, make(shape), library), library, options)


def playing(runner: NativeRunner) -> Player:
    """Play on a pool full of NaN."""
    runner.cache.data.fill(255)
    return Player(runner)


def torch_logits(tokens: list[int], **changes: Any) -> Tensor:
    shape = read_config({**CONFIG, **changes})
    model = read_llama(shape, RandomWeights(shape), torch.float32, torch.device("cpu"))
    runner = TorchRunner(model, EngineConfig(num_threads=1))
    return Player(runner).chunked(tokens, len(tokens))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_key_value_heads": 6, "tie_word_embeddings": True},
        {"attention_bias": True, "mlp_bias": True},
        QWEN,
        {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"vocab_size": 333},
    ],
)
def test_exact_logits_are_the_torch_model_s(changes: dict[str, Any]) -> None:
    tokens = some_tokens(100)
    wanted = torch_logits(tokens, **changes)
    assert close(playing(native(**changes)).chunked(tokens, 100), wanted)


@pytest.mark.parametrize("is_exact", [True, False])
@pytest.mark.parametrize("block_size", [1, 16, 32, 64])
def test_chunks_change_no_bit(block_size: int, is_exact: bool) -> None:
    tokens = some_tokens(130)
    cold = playing(native(is_exact=is_exact)).chunked(tokens, 130)
    for chunk in (1, 16, 100):
        runner = native(block_size, is_exact=is_exact)
        assert torch.equal(playing(runner).chunked(tokens, chunk), cold)


@pytest.mark.parametrize("is_exact", [True, False])
def test_company_changes_no_bit(is_exact: bool) -> None:
    prompts = [some_tokens(n, seed=n) for n in (90, 11, 63, 40, 130, 12, 75)]
    found = mixed_run(playing(native(is_exact=is_exact)), prompts, 16)
    for prompt, logits in zip(prompts, found, strict=True):
        alone = playing(native(is_exact=is_exact)).chunked(prompt, len(prompt))
        assert torch.equal(logits, alone)


def test_the_number_of_threads_changes_no_bit() -> None:
    tokens = some_tokens(60)
    two = playing(native()).chunked(tokens, 60)
    library = load_library()
    assert library is not None
    runner = native()
    library.set_threads(3)
    assert torch.equal(playing(runner).chunked(tokens, 60), two)


def test_a_block_may_be_copied_in_the_pass_that_fills_it() -> None:
    player, tokens = playing(native(is_exact=False)), some_tokens(40)
    leader, follower = Seq(tokens[:20]), Seq([*tokens[:20], 7, 8, 9])
    player.slots(leader, 0, 20)
    follower.block_table = [leader.block_table[0], player.free.pop()]
    follower.num_computed_tokens = 20
    copied = [leader.block_table[1] * 16 + i for i in range(4)]
    to = [follower.block_table[1] * 16 + i for i in range(4)]
    _, logits = player.step([(leader, 20), (follower, 3)], (copied, to))
    alone = playing(native(is_exact=False)).chunked(follower.tokens, 23)
    assert torch.equal(logits, alone[20:])


def test_a_poisoned_sequence_leaves_its_neighbours_alone() -> None:
    runner = native(is_exact=False)
    player, healthy = playing(runner), Seq(some_tokens(30))
    poisoned = Seq(some_tokens(30, seed=1))
    player.step([(poisoned, 29), (healthy, 29)])
    layers = runner.cache.data.view("uint16").reshape(3, 2, -1, 2 * 16 * 16)
    layers[:, :, poisoned.block_table] = 0x7FC0  # bf16's NaN
    bad, good = player.step([(poisoned, 1), (healthy, 1)])
    assert bad.isnan().all()
    alone = playing(native(is_exact=False)).chunked(healthy.tokens, 30)
    assert torch.equal(good, alone[29:])


@pytest.mark.parametrize("is_exact", [True, False])
@pytest.mark.parametrize("vocab_size", [320, 333])
def test_a_pass_knows_the_largest_of_each_row(vocab_size: int, is_exact: bool) -> None:
    runner = native(is_exact=is_exact, vocab_size=vocab_size)
    (logits,) = playing(runner).step([(Seq(some_tokens(130)), 130)])
    assert runner.largest_ids == logits.argmax(dim=1).tolist()


class EvenWeights(RandomWeights):
    """The same, but all tokens get the same logit."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self._tensors["lm_head.weight"][:] = self._tensors["lm_head.weight"][0]


def test_the_first_of_equals_is_the_largest_and_padding_never_is() -> None:
    runner = native(make_weights=EvenWeights, vocab_size=333)
    (logits,) = playing(runner).step([(Seq(some_tokens(60)), 60)])
    assert (logits < 0).any()
    assert (logits > 0).any()
    assert runner.largest_ids == [0] * 60


def test_a_row_that_is_not_finite_has_no_largest() -> None:
    runner = native()
    player, poisoned, healthy = playing(runner), Seq(some_tokens(20)), Seq(some_tokens(20, seed=1))
    player.step([(poisoned, 19), (healthy, 19)])
    values = runner.cache.data.view("float32").reshape(3, 2, -1, 2 * 16 * 16)
    values[:, :, poisoned.block_table] = np.nan
    _, good = player.step([(poisoned, 1), (healthy, 1)])
    assert runner.largest_ids == [NOT_FINITE, int(good.argmax())]


def test_no_rows_give_no_logits() -> None:
    player = playing(native())
    seq = Seq(some_tokens(5))
    player.step([(seq, 5)])
    assert player.runner.limits.logits_width == 320


def test_shapes_that_the_kernels_do_not_know_are_left_to_torch() -> None:
    shape = read_config(CONFIG)
    assert is_native(shape)
    assert not is_native(replace(shape, head_dim=24))
    assert not is_native(replace(shape, intermediate_size=80))
