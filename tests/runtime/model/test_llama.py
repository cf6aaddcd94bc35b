"""A small random model: chunks, batches, block sizes and copies change no result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from plait.runtime.config import EngineConfig
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.load.weights import opened
from plait.runtime.model.checkpoint import expected_shapes
from plait.runtime.model.config import ModelConfig, read_config
from plait.runtime.model.llama import read_llama
from plait.runtime.model.runner import TorchRunner
from plait.runtime.sequence import Batch

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


class RandomWeights:
    """Tensors of the right shapes from a fixed seed."""

    def __init__(self, config: ModelConfig) -> None:
        rng = torch.Generator().manual_seed(0)
        self._tensors = {
            name: torch.randn(shape, generator=rng) * 0.2
            for name, shape in expected_shapes(config).items()
        }

    def names(self) -> Sequence[str]:
        return list(self._tensors)

    def tensor(self, name: str) -> Tensor:
        return self._tensors[name]


@dataclass(eq=False)
class Seq:
    """The tokens of one sequence, its blocks, and how many tokens are computed."""

    tokens: list[int]
    block_table: list[int] = field(default_factory=list)
    num_computed_tokens: int = 0


class Player:
    """A naive engine: hands out blocks in a scattered order and asks for every row's logits."""

    def __init__(self, runner: TorchRunner) -> None:
        self.runner = runner
        self.block_size = runner.limits.block_size
        runner.cache.pool.fill_(torch.nan)
        rng = np.random.default_rng(0)
        self.free = rng.permutation(runner.limits.num_blocks).tolist()

    def slots(self, seq: Seq, begin: int, end: int) -> list[int]:
        size = self.block_size
        while len(seq.block_table) * size < end:
            seq.block_table.append(self.free.pop())
        return [seq.block_table[p // size] * size + p % size for p in range(begin, end)]

    def step(
        self, work: list[tuple[Seq, int]], copies: tuple[list[int], list[int]] = ([], [])
    ) -> list[Tensor]:
        """Compute the next `count` tokens of each sequence; logits [count, width] of each."""
        spans = [
            (seq, seq.num_computed_tokens, seq.num_computed_tokens + count) for seq, count in work
        ]
        slots = [slot for span in spans for slot in self.slots(*span)]
        tables = np.zeros((len(work), max(len(seq.block_table) for seq, _ in work)), np.int32)
        for row, (seq, _) in enumerate(work):
            tables[row, : len(seq.block_table)] = seq.block_table
        batch = Batch(
            token_ids=np.array([t for seq, a, b in spans for t in seq.tokens[a:b]], np.int32),
            positions=np.array([p for _, a, b in spans for p in range(a, b)], np.int32),
            slot_mapping=np.array(slots, np.int64),
            cu_seqlens=np.cumsum([0] + [count for _, count in work], dtype=np.int32),
            seq_lens=np.array([end for _, _, end in spans], np.int32),
            block_tables=tables,
            copy_from=np.array(copies[0], np.int64),
            copy_to=np.array(copies[1], np.int64),
            logit_rows=np.arange(len(slots), dtype=np.int64),
        )
        for seq, _, end in spans:
            seq.num_computed_tokens = end
        ends = np.cumsum([count for _, count in work])[:-1]
        return list(self.runner.run(batch).tensor_split(torch.from_numpy(ends)))

    def chunked(self, tokens: list[int], chunk: int) -> Tensor:
        """Compute one sequence alone, in chunks; logits of all its tokens."""
        seq, parts = Seq(tokens), []
        while seq.num_computed_tokens < len(tokens):
            count = min(chunk, len(tokens) - seq.num_computed_tokens)
            parts += self.step([(seq, count)])
        return torch.cat(parts)


def tiny(block_size: int = 16, **changes: object) -> TorchRunner:
    shape = read_config({**CONFIG, **changes})
    model = read_llama(shape, RandomWeights(shape), torch.float32, CPU)
    return TorchRunner(model, EngineConfig(block_size=block_size, num_threads=1))


def some_tokens(count: int, seed: int = 0, width: int = 320) -> list[int]:
    tokens: list[int] = np.random.default_rng(seed).integers(0, width, count).tolist()
    return tokens


def close(found: Tensor, wanted: Tensor, tolerance: float = 1e-4) -> bool:
    return float((found - wanted).abs().max()) < tolerance  # False for NaN


@pytest.mark.parametrize("block_size", [1, 16, 32, 64])
@pytest.mark.parametrize("chunk", [1, 16, 64, 100])
def test_chunks_change_no_logits(block_size: int, chunk: int) -> None:
    tokens = some_tokens(130)
    cold = Player(tiny()).chunked(tokens, 130)
    assert close(Player(tiny(block_size)).chunked(tokens, chunk), cold)


def mixed_run(player: Player, prompts: list[list[int]], chunk: int) -> list[Tensor]:
    """Start a prompt every other step, so that decodes and chunks of all ages meet."""
    seqs = [Seq(prompt) for prompt in prompts]
    found: dict[Seq, list[Tensor]] = {seq: [] for seq in seqs}
    turn = 0
    while any(seq.num_computed_tokens < len(seq.tokens) for seq in seqs):
        work = []
        for seq in seqs[: 1 + turn // 2]:
            left = len(seq.tokens) - seq.num_computed_tokens
            if left > 0:  # the last ten tokens come one a step, as decodes do
                work.append((seq, 1 if left <= 10 else min(chunk, left - 10)))
        turn += 1
        if work:
            for (seq, _), logits in zip(work, player.step(work), strict=True):
                found[seq].append(logits)
    return [torch.cat(found[seq]) for seq in seqs]


@pytest.mark.parametrize("chunk", [5, 16, 64])
def test_company_changes_no_logits(chunk: int) -> None:
    prompts = [some_tokens(n, seed=n) for n in (90, 11, 63, 40, 130, 12, 75)]
    found = mixed_run(Player(tiny()), prompts, chunk)
    for prompt, logits in zip(prompts, found, strict=True):
        assert close(logits, Player(tiny()).chunked(prompt, len(prompt)))


def test_a_block_may_be_copied_in_the_pass_that_fills_it() -> None:
    player, tokens = Player(tiny()), some_tokens(40)
    leader, follower = Seq(tokens[:20]), Seq([*tokens[:20], 7, 8, 9])
    player.slots(leader, 0, 20)
    follower.block_table = [leader.block_table[0], player.free.pop()]
    follower.num_computed_tokens = 20
    copied = [leader.block_table[1] * 16 + i for i in range(4)]
    to = [follower.block_table[1] * 16 + i for i in range(4)]
    _, logits = player.step([(leader, 20), (follower, 3)], (copied, to))
    assert close(logits, Player(tiny()).chunked(follower.tokens, 23)[20:])


def test_only_the_wanted_rows_come_back() -> None:
    player, seq = Player(tiny()), Seq(some_tokens(9))
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
    assert close(player.runner.run(batch), wanted[[8, 2]])
    batch.logit_rows = np.zeros(0, np.int64)
    assert player.runner.run(batch).shape == (0, 320)


def test_a_poisoned_sequence_leaves_its_neighbours_alone() -> None:
    runner = tiny()
    player, healthy = Player(runner), Seq(some_tokens(30))
    poisoned = Seq(some_tokens(30, seed=1))
    player.step([(poisoned, 29), (healthy, 29)])
    for block in poisoned.block_table:
        runner.cache.pool[:, :, block] = torch.nan
    bad, good = player.step([(poisoned, 1), (healthy, 1)])
    assert bad.isnan().all()
    assert close(good, Player(tiny()).chunked(healthy.tokens, 30)[29:])


def test_bfloat16_gives_fp32_logits_near_the_exact_ones() -> None:
    shape = read_config(CONFIG)
    model = read_llama(shape, RandomWeights(shape), torch.bfloat16, CPU)
    runner = TorchRunner(model, EngineConfig(num_threads=1, dtype="bfloat16"))
    found = Player(runner).chunked(some_tokens(40), 16)
    wanted = Player(tiny()).chunked(some_tokens(40), 40)
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
    cold = [Player(runner).chunked(prompt, len(prompt)).log_softmax(-1) for prompt in prompts]
    for chunk in (16, 64):
        assert close(Player(runner).chunked(prompts[0], chunk).log_softmax(-1), cold[0])
        mixed = mixed_run(Player(runner), prompts, chunk)
        for logits, wanted in zip(mixed, cold, strict=True):
            assert torch.equal(logits.argmax(-1), wanted.argmax(-1))
            assert close(logits.log_softmax(-1), wanted)
