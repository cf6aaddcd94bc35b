"""A small random model: chunks, batches, block sizes and copies change no result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from plait.runtime.config import EngineConfig
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.load.weights import opened
from plait.runtime.model.config import read_config
from plait.runtime.model.llama import read_llama
from plait.runtime.model.runner import TorchRunner
from plait.runtime.sequence import Batch

from .player import Player, RandomWeights, Seq, as_tensor, close, mixed_run, some_tokens

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "vocab_size": 320,
    "max_position_embeddings": 512,
}
CPU = torch.device("cpu")


def playing(runner: TorchRunner) -> Player:
    """Play on a pool full of NaN."""
    runner.cache.pool.fill_(torch.nan)
    return Player(runner)


def tiny(block_size: int = 16, **changes: object) -> TorchRunner:
    shape = read_config({**CONFIG, **changes})
    model = read_llama(shape, RandomWeights(shape), torch.float32, CPU)
    return TorchRunner(model, EngineConfig(block_size=block_size, num_threads=1))


@pytest.mark.parametrize("block_size", [1, 16, 32, 64])
@pytest.mark.parametrize("chunk", [1, 16, 64, 100])
def test_chunks_change_no_logits(block_size: int, chunk: int) -> None:
    tokens = some_tokens(130)
    cold = playing(tiny()).chunked(tokens, 130)
    assert close(playing(tiny(block_size)).chunked(tokens, chunk), cold)


@pytest.mark.parametrize("chunk", [5, 16, 64])
def test_company_changes_no_logits(chunk: int) -> None:
    prompts = [some_tokens(n, seed=n) for n in (90, 11, 63, 40, 130, 12, 75)]
    found = mixed_run(playing(tiny()), prompts, chunk)
    for prompt, logits in zip(prompts, found, strict=True):
        assert close(logits, playing(tiny()).chunked(prompt, len(prompt)))


def test_a_block_may_be_copied_in_the_pass_that_fills_it() -> None:
    player, tokens = playing(tiny()), some_tokens(40)
    leader, follower = Seq(tokens[:20]), Seq([*tokens[:20], 7, 8, 9])
    player.slots(leader, 0, 20)
    follower.block_table = [leader.block_table[0], player.free.pop()]
    follower.num_computed_tokens = 20
    copied = [leader.block_table[1] * 16 + i for i in range(4)]
    to = [follower.block_table[1] * 16 + i for i in range(4)]
    _, logits = player.step([(leader, 20), (follower, 3)], (copied, to))
    assert close(logits, playing(tiny()).chunked(follower.tokens, 23)[20:])


def test_only_the_wanted_rows_come_back() -> None:
    player, seq = playing(tiny()), Seq(some_tokens(9))
    wanted = player.chunked(seq.tokens, 9)
    batch = Batch(
        token_ids=np.array(seq.tokens, np.int32),
        positions=np.arange(9, dtype=np.int32),
        slot_mapping=np.array(player.slots(seq, 0, 9), np.int64),
        cu_seqlens=np.array([0, 9], np.int32),
        seq_lens=np.array([9], np.int32),
        block_tables=np.array([seq.block_table], np.int32),
        copy_from=np.zeros(0, np.int64),
        copy_to=np.zeros(0, np.int64),
        logit_rows=np.array([8, 2], np.int64),
    )
    assert close(as_tensor(player.runner.run(batch)), wanted[[8, 2]])
    batch.logit_rows = np.zeros(0, np.int64)
    assert player.runner.run(batch).shape == (0, 320)


def test_a_poisoned_sequence_leaves_its_neighbours_alone() -> None:
    runner = tiny()
    player, healthy = playing(runner), Seq(some_tokens(30))
    poisoned = Seq(some_tokens(30, seed=1))
    player.step([(poisoned, 29), (healthy, 29)])
    for block in poisoned.block_table:
        runner.cache.pool[:, :, block] = torch.nan
    bad, good = player.step([(poisoned, 1), (healthy, 1)])
    assert bad.isnan().all()
    assert close(good, playing(tiny()).chunked(healthy.tokens, 30)[29:])


def test_bfloat16_gives_fp32_logits_near_the_exact_ones() -> None:
    shape = read_config(CONFIG)
    model = read_llama(shape, RandomWeights(shape), torch.bfloat16, CPU)
    runner = TorchRunner(model, EngineConfig(num_threads=1, dtype="bfloat16"))
    found = playing(runner).chunked(some_tokens(40), 16)
    wanted = playing(tiny()).chunked(some_tokens(40), 40)
    assert found.dtype == torch.float32
    assert float((found - wanted).norm() / wanted.norm()) < 0.05  # 8 bits, three layers


@pytest.fixture
def default_model() -> Path:
    stored = Store(default_home()).find(DEFAULT_MODEL)
    if stored is None:
        pytest.skip(f"{DEFAULT_MODEL} is not pulled: run `plait pull {DEFAULT_MODEL}`")
    return stored.path


@pytest.mark.slow
def test_chunks_and_company_change_nothing_on_the_default_model(default_model: Path) -> None:
    with opened(default_model) as weights:
        model = read_llama(read_config(weights.config), weights, torch.float32, CPU)
    runner = TorchRunner(model, EngineConfig(kv_cache_tokens=4096))
    prompts = [some_tokens(n, seed=n, width=49152) for n in (150, 40, 90, 23)]
    cold = [playing(runner).chunked(prompt, len(prompt)).log_softmax(-1) for prompt in prompts]
    for chunk in (16, 64):
        assert close(playing(runner).chunked(prompts[0], chunk).log_softmax(-1), cold[0])
        mixed = mixed_run(playing(runner), prompts, chunk)
        for logits, wanted in zip(mixed, cold, strict=True):
            assert torch.equal(logits.argmax(-1), wanted.argmax(-1))
            assert close(logits.log_softmax(-1), wanted)
