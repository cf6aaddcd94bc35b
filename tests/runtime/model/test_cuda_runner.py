"""The GPU's runner chooses between its graphs and a plain pass, and keeps a block for padding.

The passes themselves are checked by `make gpu-check`, and in Triton's interpreter.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from plait.kernels.linear import prepare
from plait.runtime.cache.kv import KVCache
from plait.runtime.config import EngineConfig
from plait.runtime.errors import ModelLoadError
from plait.runtime.model import cuda
from plait.runtime.model.config import ModelConfig, RopeConfig
from plait.runtime.model.cuda import CudaRunner
from plait.runtime.model.cuda_layers import CudaStep
from plait.runtime.model.cuda_staging import Forward, Staging
from plait.runtime.model.llama import Llama
from plait.runtime.model.rope import inverse_frequencies
from plait.runtime.sequence import Batch

SHAPE = ModelConfig(
    family="llama",
    num_layers=0,
    hidden_size=8,
    num_heads=2,
    num_kv_heads=1,
    head_dim=16,
    intermediate_size=8,
    vocab_size=11,
    max_positions=640,
    norm_eps=1e-6,
    rope=RopeConfig(10000.0),
    is_tied=True,
    has_qkv_bias=False,
    has_o_bias=False,
    has_mlp_bias=False,
    has_qk_norm=False,
    sliding_window=None,
)


class Passes:
    """Stands in for the forward pass; logit r of a row is its token id."""

    def __init__(self) -> None:
        self.steps: list[CudaStep] = []

    def __call__(self, model: Llama, step: CudaStep, cache: KVCache) -> Tensor:
        self.steps.append(step)
        logits = step.token_ids[:, None].float().expand(-1, 11)
        return logits if step.logit_rows is None else logits[step.logit_rows.long()]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    made = Passes()
    monkeypatch.setattr(cuda, "forward", made)
    return made


def as_it_is(forward: Forward) -> Forward:
    return forward


def runner(config: EngineConfig) -> CudaRunner:
    table = torch.eye(11, 8)
    freq = torch.from_numpy(inverse_frequencies(SHAPE.rope, 16))
    return CudaRunner(
        Llama(SHAPE, table, (), torch.ones(8), prepare(table), freq), config, as_it_is
    )


def batch(news: list[int], logit_rows: list[int], tables: np.ndarray | None = None) -> Batch:
    num_tokens = sum(news)
    if tables is None:
        tables = np.arange(len(news), dtype=np.int32)[:, None]
    return Batch(
        token_ids=np.arange(1, 1 + num_tokens, dtype=np.int32),
        positions=np.zeros(num_tokens, np.int32),
        slot_mapping=np.arange(num_tokens, dtype=np.int64),
        cu_seqlens=np.array([0, *np.cumsum(news)], np.int32),
        seq_lens=np.full(len(news), 16 * tables.shape[1], np.int32),
        block_tables=tables,
        copy_from=np.zeros(0, np.int64),
        copy_to=np.zeros(0, np.int64),
        logit_rows=np.array(logit_rows, np.int64),
    )


CONFIG = EngineConfig(kv_cache_tokens=160, max_running=8)


def test_the_last_block_of_the_pool_is_no_sequences_own() -> None:
    made = runner(CONFIG)
    assert made.limits.num_blocks == 9
    assert made.cache.shape.num_blocks == 10
    with pytest.raises(ModelLoadError, match="kv_cache_tokens"):
        runner(EngineConfig(kv_cache_tokens=16))


def test_a_prefill_runs_before_any_request_and_touches_no_sequences_block(passes: Passes) -> None:
    made = runner(EngineConfig(kv_cache_tokens=160, block_size=1, max_running=8))
    step = passes.steps[-1]
    assert len(step.plan.tiles) > 0
    assert set(step.slot_mapping.tolist()) == {made.limits.num_blocks}
    assert set(step.plan.block_tables.flatten().tolist()) == {made.limits.num_blocks}
    assert step.copy_to.tolist() == [made.limits.num_blocks]


def test_decodes_run_padded_and_give_the_rows_that_were_asked(passes: Passes) -> None:
    made = runner(CONFIG)
    logits = made.run(batch([1, 1, 1], [0, 1, 2]))
    assert logits[:, 0].tolist() == [1, 2, 3]
    step = passes.steps[-1]
    assert step.slot_mapping.tolist() == [0, 1, 2, 9 * 16]
    assert step.plan.seq_lens.tolist() == [16, 16, 16, 0]
    assert step.plan.block_tables.shape == (4, 40)
    assert made.run(batch([1, 1, 1], [2, 0]))[:, 0].tolist() == [3, 1]


def test_a_mixed_batch_runs_as_it_is(passes: Passes) -> None:
    made = runner(CONFIG)
    assert made.run(batch([1, 3, 1], [0, 3, 4]))[:, 0].tolist() == [1, 4, 5]
    step = passes.steps[-1]
    assert step.plan.decode_ids.tolist() == [0, 2]
    assert len(step.plan.tiles) == 1
    assert len(step.token_ids) == 5


def test_more_decodes_than_the_engine_runs_have_no_graph(passes: Passes) -> None:
    made = runner(EngineConfig(kv_cache_tokens=640, max_running=3))
    assert made.run(batch([1] * 6, list(range(6))))[:, 0].tolist() == [1, 2, 3, 4, 5, 6]
    assert len(passes.steps[-1].token_ids) == 6


def test_decodes_that_share_a_prefix_have_a_graph_of_their_own(passes: Passes) -> None:
    made = runner(CONFIG)
    tables = np.arange(5 * 20, dtype=np.int32).reshape(5, 20)
    tables[:, :18] = tables[0, :18]
    made.run(batch([1] * 5, list(range(5)), tables))
    plan = passes.steps[-1].plan
    assert plan.begins.tolist() == [18 * 16] * 5 + [0] * 3
    num_tiles = int((plan.prefix_tiles[:, 4] > 0).sum())
    assert 0 < num_tiles < len(plan.prefix_tiles)


def test_arrays_of_the_same_shapes_land_at_the_same_addresses() -> None:
    staging = Staging(torch.device("cpu"))
    one = staging.send({"a": np.arange(3), "b": np.ones((2, 5), np.int64)})
    addresses = {name: tensor.data_ptr() for name, tensor in one.items()}
    two = staging.send({"a": np.arange(3) + 7, "b": np.zeros((2, 5), np.int64)})
    assert {name: tensor.data_ptr() for name, tensor in two.items()} == addresses
    assert two["a"].tolist() == [7, 8, 9]
    assert two["b"].tolist() == [[0] * 5] * 2
    assert all(address % 16 == 0 for address in addresses.values())


def test_staging_grows_with_what_is_sent() -> None:
    staging = Staging(torch.device("cpu"))
    staging.send({"a": np.arange(3)})
    assert staging.send({"a": np.arange(5000)})["a"].tolist() == list(range(5000))
