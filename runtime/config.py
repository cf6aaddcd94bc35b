"""The engine's settings, validated once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BLOCK_SIZES = (1, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of one engine.

    `token_budget` new tokens at most in one step; `max_running` sequences at most in
    the batch; `max_waiting` requests at most in the queue. `kv_cache_tokens` is the size
    of the pool, None for four contexts. `is_prefix_caching` False turns the radix cache
    off, for benchmarks.

    Raises: ValueError, naming the field.
    """

    block_size: int = 16
    token_budget: int = 512
    max_running: int = 64
    max_waiting: int = 16384
    kv_cache_tokens: int | None = None
    max_context: int | None = None
    is_prefix_caching: bool = True
    grammar_timeout_s: float = 2.0
    grammar_max_states: int = 50_000
    dtype: Literal["float32", "bfloat16"] = "float32"
    device: str = "cpu"
    num_threads: int | None = None

    def __post_init__(self) -> None:
        if self.block_size not in BLOCK_SIZES:
            raise ValueError(f"block_size={self.block_size}: choose one of {BLOCK_SIZES}")
        for name in ("token_budget", "max_running", "max_waiting"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: must be 1 or more")
