"""A whole model on the GPU's runner against the same weights on the CPU's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from plait.kernels import device as dispatch
from plait.kernels.linear import Linear, QuantizedFormat, QuantizedLinear, prepare
from plait.runtime.config import EngineConfig
from plait.runtime.model.config import ModelConfig, RopeConfig
from plait.runtime.model.cuda import CudaRunner
from plait.runtime.model.cuda_staging import Forward
from plait.runtime.model.layers import Layer
from plait.runtime.model.llama import Llama, read_llama
from plait.runtime.model.rope import inverse_frequencies
from plait.runtime.model.runner import TorchRunner
from plait.runtime.sequence import Batch

from .case import Case, random, relative_rms
from .random_blocks import FORMATS, RandomBlocks

BLOCK_SIZE = 16


def model_config(
    hidden_size: int,
    num_layers: int,
    heads: tuple[int, int, int],
    vocab_size: int,
    *,
    is_qwen: bool,
) -> ModelConfig:
    """Describe a model; `heads` is their number, that of KV heads, and their size."""
    return ModelConfig(
        family="qwen3" if is_qwen else "llama",
        num_layers=num_layers,
        hidden_size=hidden_size,
        num_heads=heads[0],
        num_kv_heads=heads[1],
        head_dim=heads[2],
        intermediate_size=4 * hidden_size,
        vocab_size=vocab_size,
        max_positions=4096,
        norm_eps=1e-5,
        rope=RopeConfig(10000.0),
        is_tied=True,
        has_qkv_bias=False,
        has_o_bias=False,
        has_mlp_bias=False,
        has_qk_norm=is_qwen,
        sliding_window=None,
    )


def random_llama(
    config: ModelConfig,
    dtype: torch.dtype,
    device: torch.device,
    draw: Callable[..., Tensor] = random,
) -> Llama:
    """Make a model of random weights, the same for every device and dtype if `draw` is."""
    hidden, head_dim = config.hidden_size, config.head_dim
    width = (config.num_heads + 2 * config.num_kv_heads) * head_dim

    def weight(seed: int, *shape: int) -> Tensor:
        values = draw(*shape, seed=seed) / math.sqrt(shape[-1])
        return values.to(device, dtype)

    def matrix(seed: int, *shape: int) -> Linear:
        return prepare(weight(seed, *shape))

    def layer(seed: int) -> Layer:
        ones = torch.ones(hidden, dtype=dtype, device=device)
        norms = torch.ones(config.num_heads + config.num_kv_heads, head_dim)
        return Layer(
            input_norm=ones,
            qkv=matrix(seed, width, hidden),
            qk_norm=norms.to(device, dtype) if config.has_qk_norm else None,
            o=matrix(seed + 1, hidden, config.num_heads * head_dim),
            post_norm=ones,
            gate_up=matrix(seed + 2, 2 * config.intermediate_size, hidden),
            down=matrix(seed + 3, hidden, config.intermediate_size),
        )

    embedding = weight(1, config.vocab_size, hidden)
    return Llama(
        config=config,
        embedding=embedding,
        layers=tuple(layer(10 * (i + 1)) for i in range(config.num_layers)),
        norm=torch.ones(hidden, dtype=dtype, device=device),
        head=prepare(embedding),
        inv_freq=torch.from_numpy(inverse_frequencies(config.rope, head_dim)).to(device),
    )


def make_batch(
    spans: list[tuple[int, int]],  # (new tokens, context)
    tables: np.ndarray,
    copies: tuple[list[int], list[int]] = ([], []),
) -> Batch:
    """Make a step; each sequence wants the logits of its last token."""
    news = [new for new, _ in spans]
    positions = np.concatenate([np.arange(all - new, all) for new, all in spans])
    rows = np.repeat(np.arange(len(spans)), news)
    bounds = np.array([0, *itertools.accumulate(news)], np.int32)
    slots = tables[rows, positions // BLOCK_SIZE] * BLOCK_SIZE + positions % BLOCK_SIZE
    return Batch(
        token_ids=((positions * 7 + rows * 3) % 50).astype(np.int32),
        positions=positions.astype(np.int32),
        slot_mapping=slots.astype(np.int64),
        cu_seqlens=bounds,
        seq_lens=np.array([all for _, all in spans], np.int32),
        block_tables=tables[: len(spans)].astype(np.int32),
        copy_from=np.array(copies[0], np.int64),
        copy_to=np.array(copies[1], np.int64),
        logit_rows=(bounds[1:] - 1).astype(np.int64),
    )


def _steps() -> Iterator[Batch]:
    """Give prefill, a mixed step with copies, and decodes, alone and with a shared prefix."""
    own = np.arange(5 * 20).reshape(5, 20)
    yield make_batch([(17, 17), (40, 40), (1, 1)], own)
    yield make_batch([(1, 18), (3, 43), (20, 20)], own[[0, 1, 3]], ([1, 2], [700, 701]))
    yield make_batch([(1, 19), (1, 44), (1, 21)], own[[0, 1, 3]])
    shared = own.copy()
    shared[1:, :17] = own[0, :17]
    yield make_batch([(1, 282), (1, 281), (1, 300), (1, 290)], shared[1:])


@dataclass(frozen=True, slots=True)
class Kind:
    """A model to check."""

    dtype: torch.dtype = torch.float32
    is_qwen: bool = False
    window: int | None = None
    form: QuantizedFormat | None = None  # of the weights; None: plain ones

    @property
    def name(self) -> str:
        """Say what is special about it."""
        return (
            f"model {'qwen3' if self.is_qwen else 'llama'}"
            + (f" window {self.window}" if self.window is not None else "")
            + (f" {self.form}" if self.form is not None else "")
            + f" {str(self.dtype)[6:]}"
        )

    @property
    def bound(self) -> float:
        """Give the error allowed: two layers of sums in fp32, or of roundings to 8 bits."""
        return 1e-5 if self.dtype == torch.float32 else 5e-2


def _models(kind: Kind, shape: ModelConfig, device: torch.device) -> tuple[Llama, Llama]:
    """Make the model in fp32 on the CPU, and as the GPU's runner has it."""
    cpu = torch.device("cpu")
    if kind.form is None:
        return random_llama(shape, torch.float32, cpu), random_llama(shape, kind.dtype, device)
    source = RandomBlocks(shape, kind.form)
    kept = read_llama(shape, source, kind.dtype, device, is_quantized=True)
    assert isinstance(kept.layers[0].qkv, QuantizedLinear)
    return read_llama(shape, source, torch.float32, cpu), kept


def model_error(kind: Kind, device: torch.device) -> float:
    """Run the steps on both runners; give the worst error of the logits."""
    shape = model_config(32, 2, (4, 2, 16), 64, is_qwen=kind.is_qwen)
    shape = replace(shape, sliding_window=kind.window)
    config = EngineConfig(kv_cache_tokens=2048, max_context=512, max_running=4, num_threads=1)
    exact, weights = _models(kind, shape, device)
    plain = TorchRunner(exact, config)

    def again(forward: Forward) -> Forward:
        return forward

    capture = None if device.type == "cuda" else again
    with mock.patch.object(dispatch, "uses_triton", return_value=True):
        runner = CudaRunner(weights, config, capture)
    # Contexts that no step computed: any numbers will do, if both have them.
    plain.cache.pool.copy_(random(*plain.cache.pool.shape))
    runner.cache.pool.copy_(plain.cache.pool)
    errors = []
    for batch in _steps():
        wanted = plain.run(batch)
        with mock.patch.object(dispatch, "uses_triton", return_value=True):
            errors.append(relative_rms(runner.run(batch), wanted))
    return max(errors)


def model_cases() -> Iterator[Case]:
    """Give the models to check."""
    kinds = [
        Kind(),
        Kind(is_qwen=True),
        Kind(window=20),
        *(Kind(form=form) for form in FORMATS),
        Kind(torch.bfloat16),
        Kind(torch.bfloat16, window=20, form="Q8_0"),
    ]
    for kind in kinds:
        yield Case(kind.name, partial(model_error, kind), kind.bound)
