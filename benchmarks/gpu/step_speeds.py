"""Steps of a random model of the shape of Llama 3.2 1B, and tokens a second."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plait.runtime.config import EngineConfig
from plait.runtime.model.cuda import CudaRunner
from plait.runtime.sequence import Batch

from .floors import seconds
from .model_cases import BLOCK_SIZE, make_batch, model_config, random_llama

NUM_SEQS = 64
PROMPT_LEN, NUM_NEW = 128, 64
HIDDEN, LAYERS, HEADS, VOCAB = 2048, 16, (32, 8, 64), 128256


def make_runner(device: torch.device) -> CudaRunner:
    """Make a runner of random weights in bf16."""

    def draw(*shape: int, seed: int) -> Tensor:
        return torch.randn(shape, device=device)

    config = model_config(HIDDEN, LAYERS, HEADS, VOCAB, is_qwen=False)
    num_tokens = (NUM_SEQS + 1) * 1024
    return CudaRunner(
        random_llama(config, torch.bfloat16, device, draw),
        EngineConfig(kv_cache_tokens=num_tokens, max_context=1024, max_running=NUM_SEQS),
    )


def _tables() -> np.ndarray:
    width = 1024 // BLOCK_SIZE
    return np.arange(NUM_SEQS * width).reshape(NUM_SEQS, width)


def _decode_batch(context: int) -> Batch:
    return make_batch([(1, context)] * NUM_SEQS, _tables())


def step_seconds(device: torch.device) -> tuple[float, float]:
    """Give the time of a decode step as the engine sees it, and what of it the device works.

    The engine's view: make the arrays' tensors, run, draw greedily, wait for the tokens. The
    device's: the same graph, replayed back to back.
    """
    runner = make_runner(device)
    batch = _decode_batch(512)
    for _ in range(5):
        runner.run(batch).argmax(-1).tolist()
    num_steps = 50
    start = time.perf_counter()
    for _ in range(num_steps):
        runner.run(batch).argmax(-1).tolist()
    step_s = (time.perf_counter() - start) / num_steps
    replay = next(graph for bucket, graph in runner.graphs.items() if bucket.num_seqs == NUM_SEQS)
    return step_s, seconds(lambda: replay().argmax(-1))


def tokens_per_second(device: torch.device) -> tuple[float, float]:
    """Give the new tokens a second of the runner and of transformers, prompts included.

    64 prompts of 128 tokens, 64 new tokens each, greedy. Ours is the runner's loop without the
    engine around it; the logits of a step come to the host as token ids only.
    """
    ours = min(_run_ours(make_runner(device)) for _ in range(2))
    theirs = _run_transformers(device)
    return NUM_SEQS * NUM_NEW / ours, NUM_SEQS * NUM_NEW / theirs


def _run_ours(runner: CudaRunner) -> float:
    tables = _tables()
    start = time.perf_counter()
    runner.run(make_batch([(PROMPT_LEN, PROMPT_LEN)] * NUM_SEQS, tables)).argmax(-1).tolist()
    for step in range(1, NUM_NEW):
        runner.run(_decode_batch(PROMPT_LEN + step)).argmax(-1).tolist()
    return time.perf_counter() - start


def _run_transformers(device: torch.device) -> float:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=HIDDEN,
        intermediate_size=4 * HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS[0],
        num_key_value_heads=HEADS[1],
        head_dim=HEADS[2],
        vocab_size=VOCAB,
        tie_word_embeddings=True,
    )
    with torch.device(device):
        model: Any = LlamaForCausalLM(config)  # its own types contradict each other
    model = model.to(torch.bfloat16).eval()
    prompts = torch.randint(0, VOCAB, (NUM_SEQS, PROMPT_LEN), device=device)
    options = {"max_new_tokens": NUM_NEW, "min_new_tokens": NUM_NEW, "do_sample": False}
    took = []
    for _ in range(2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        model.generate(prompts, attention_mask=torch.ones_like(prompts), **options)
        torch.cuda.synchronize()
        took.append(time.perf_counter() - start)
    return min(took)
