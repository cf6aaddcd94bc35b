"""The context to serve, and the size of the KV pool."""

from __future__ import annotations

from ..config import EngineConfig
from ..errors import ModelLoadError
from .config import ModelConfig
from .host import free_memory_bytes
from .interface import ModelLimits

# A pool that nobody sized: so many contexts, and no more than this share of the free memory.
DEFAULT_CONTEXTS = 4
DEFAULT_MEMORY_SHARE = 0.25


def choose_context(model: ModelConfig, config: EngineConfig) -> int:
    """Give the longest context to serve: the model's, or less if the config says so.

    Raises: ModelLoadError if only some layers of the model would see all of it.
    """
    longest = model.max_positions
    if config.max_context is not None:
        longest = min(longest, config.max_context)
    if longest < 1:
        raise ModelLoadError(f"max_context={longest}: a context has 1 token or more")
    window = model.window_of(longest)
    if window is not None and model.num_whole_layers:
        raise ModelLoadError(
            f"sliding_window={window} of some layers, with {model.num_whole_layers} of "
            f"{model.num_layers} that see the whole context, is not supported for a context of "
            f"{longest}; set max_context to {window} or less"
        )
    return longest


def limits_of(model: ModelConfig, config: EngineConfig, value_bytes: int) -> ModelLimits:
    """Size the KV pool, in which a number takes `value_bytes`. Raises: ModelLoadError."""
    max_context = choose_context(model, config)
    values_per_token = 2 * model.num_layers * model.num_kv_heads * model.head_dim
    num_tokens = config.kv_cache_tokens
    if num_tokens is None:
        num_tokens = DEFAULT_CONTEXTS * max_context
        free = _free_bytes(config.device)
        if free is not None:
            share = int(free * DEFAULT_MEMORY_SHARE)
            affordable = share // (values_per_token * value_bytes)
            num_tokens = max(config.block_size, min(num_tokens, affordable))
    if num_tokens < 1:
        raise ModelLoadError(f"kv_cache_tokens={num_tokens}: the pool needs room for one block")
    return ModelLimits(
        max_context=max_context,
        num_blocks=-(-num_tokens // config.block_size),
        block_size=config.block_size,
        logits_width=model.vocab_size,
    )


def _free_bytes(device: str) -> int | None:
    if device == "cpu":
        return free_memory_bytes()
    import torch

    return int(torch.cuda.mem_get_info(torch.device(device))[0])
