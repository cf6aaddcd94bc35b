"""Counters of one engine, for people and for tests."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from .cache.blocks import BlockPool
from .cache.radix import RadixCache
from .errors import RequestError
from .sequence import Usage


@dataclass(slots=True)
class Counters:
    """Totals since the engine started. The engine owns them."""

    num_steps: int = 0
    num_preemptions: int = 0
    num_prompt_tokens: int = 0  # of requests that ended or began to run
    num_cached_tokens: int = 0
    num_computed_tokens: int = 0
    num_output_tokens: int = 0
    num_forced_tokens: int = 0  # of these, not drawn: the grammar left no choice
    num_drafted_tokens: int = 0  # guesses that went through the model, of requests that ended
    num_accepted_tokens: int = 0  # of these, drawn then
    num_draft_faults: int = 0  # requests that went on without drafts, as guessing for them failed
    num_finished: int = 0
    num_failed: int = 0
    num_aborted: int = 0
    num_repairs: int = 0

    def add_usage(self, usage: Usage) -> None:
        """Count the tokens of a request that ended, or that had begun to run."""
        self.num_prompt_tokens += usage.prompt_tokens
        self.num_cached_tokens += usage.cached_tokens
        self.num_drafted_tokens += usage.drafted_tokens
        self.num_accepted_tokens += usage.accepted_tokens

    def add_failure(self, error: RequestError) -> None:
        """Count a request that failed or was cancelled."""
        if error.code == "cancelled":
            self.num_aborted += 1
        else:
            self.num_failed += 1


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot. `num_running` and `num_waiting` count sequences; the totals begin at the start.

    Free, cached and held blocks are `num_blocks` together; `num_locked_blocks` of the cached
    ones are in use. `num_computed_tokens` counts all tokens that went through the model.
    """

    num_running: int
    num_waiting: int
    num_blocks: int
    num_free_blocks: int
    num_cached_blocks: int
    num_locked_blocks: int
    num_held_blocks: int
    num_steps: int
    num_preemptions: int
    num_prompt_tokens: int
    num_cached_tokens: int
    num_computed_tokens: int
    num_output_tokens: int
    num_forced_tokens: int
    num_drafted_tokens: int
    num_accepted_tokens: int
    num_draft_faults: int
    num_finished: int
    num_failed: int
    num_aborted: int
    num_repairs: int


def snapshot(
    counters: Counters, pool: BlockPool, cache: RadixCache, num_running: int, num_waiting: int
) -> EngineStats:
    """Give what there is to say of an engine now."""
    free, cached = pool.num_free, cache.num_blocks
    return EngineStats(
        num_running=num_running,
        num_waiting=num_waiting,
        num_blocks=pool.num_blocks,
        num_free_blocks=free,
        num_cached_blocks=cached,
        num_locked_blocks=cache.num_locked,
        num_held_blocks=pool.num_blocks - free - cached,
        **asdict(counters),
    )
