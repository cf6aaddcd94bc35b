"""What a step's logits are for: which of their rows, for which outputs and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .errors import RequestError, as_request_error
from .generation import Generation
from .job import Job
from .model.interface import Logits, Tokenizer
from .prepare import wanted
from .sample import SampleRow, sample
from .scheduler import Chunk, Plan

Prepared: TypeAlias = SampleRow | RequestError  # how a draw is made, or why it cannot be


@dataclass(frozen=True, slots=True)
class Draw:
    """A token to be drawn for an output from one row of the logits.

    `next_row` is the row after the prompt's last token, where `row` is the one before it: if
    it is that token that is drawn, the step can go on from there.
    """

    job: Job
    generation: Generation
    row: int
    next_row: int | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """The tokens of a chunk to be scored by some rows of the logits."""

    chunk: Chunk
    rows: slice


def shares(plan: Plan, jobs: Mapping[str, Job]) -> tuple[list[Draw], list[Score]]:
    """Give each chunk its rows of the logits, in the order in which they were asked for."""
    draws: list[Draw] = []
    scores: list[Score] = []
    end = 0
    for chunk in plan.chunks:
        start, end = end, end + len(wanted(chunk))
        job = jobs[chunk.sequence.request_id]
        if start == end:
            continue
        if job.generation is None:
            scores.append(Score(chunk, slice(start, end)))
        else:
            next_row = start + 1 if end - start > 1 else None
            draws.append(Draw(job, job.generation, start, next_row))
    return draws, scores


class Drawer:
    """Draws tokens of one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        control_ids = set(tokenizer.control_tokens.values()) | tokenizer.eos_token_ids
        self._absent_ids = frozenset(
            i
            for i, data in enumerate(tokenizer.token_bytes)
            if data is None and i not in control_ids
        )

    def prepare(self, draws: Sequence[Draw]) -> list[Prepared]:
        """Say how each draw is made, its mask included; or what is wrong with that output alone.

        No logits are looked at, so a device may still compute them meanwhile.
        """
        return [_prepared(draw) for draw in draws]

    def draw(
        self, draws: Sequence[Draw], rows: Sequence[Prepared], logits: Logits
    ) -> list[int | RequestError]:
        """Give a token for each draw, or what is wrong with that output alone."""
        usable = [
            (draw.row, row)
            for draw, row in zip(draws, rows, strict=True)
            if isinstance(row, SampleRow)
        ]
        numbers = [number for number, _ in usable]
        # Where all rows are drawn nobody needs them any more; else a copy is taken.
        is_all = numbers == list(range(len(logits)))
        drawn = iter(
            sample(
                logits if is_all else logits[numbers],
                [row for _, row in usable],
                self._tokenizer.vocab_size,
                self._tokenizer.eos_token_ids,
                self._absent_ids,
            )
        )
        return [row if isinstance(row, RequestError) else next(drawn) for row in rows]


def _prepared(draw: Draw) -> Prepared:
    try:
        return draw.generation.row()
    except Exception as e:  # a mask over its budget, or a bug in a grammar
        return as_request_error(e)
