"""Counters of one engine, for people and for tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Totals since the engine started. The engine owns and changes them."""

    steps: int = 0
    preemptions: int = 0
    prompt_tokens: int = 0  # of requests that ended or began to run
    cached_tokens: int = 0
    computed_tokens: int = 0
    output_tokens: int = 0
    finished: int = 0
    failed: int = 0
    aborted: int = 0
    repairs: int = 0


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot. `running` and `waiting` count sequences; the totals begin at the start.

    `free_blocks` + `cached_blocks` + `held_blocks` is `num_blocks`; `locked_blocks` of the
    cached ones are in use. `computed_tokens` counts all tokens that went through the model.
    """

    running: int
    waiting: int
    num_blocks: int
    free_blocks: int
    cached_blocks: int
    locked_blocks: int
    held_blocks: int
    steps: int
    preemptions: int
    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    output_tokens: int
    finished: int
    failed: int
    aborted: int
    repairs: int
