"""What a step's logits are for: which of their rows, for which outputs and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from ..kernels.sampling import NOT_FINITE
from .cache.node import common_len
from .errors import RequestError, as_request_error
from .generation import Generation
from .job import Job
from .model.interface import Logits, Tokenizer
from .plan import Chunk, Plan
from .prepare import wanted
from .sample import SampleRow, sample

Prepared: TypeAlias = SampleRow | RequestError  # how a draw is made, or why it cannot be


class Draw(NamedTuple):  # one an output and step: a dataclass takes three times as long
    """A token to be drawn for an output from one row of the logits.

    The row is that of the token at `position`; `guesses` are the tokens of the rows after it.
    As long as these are what is drawn, the step goes on from row to row. A guess is the last
    token of a prompt that may be spelled anew, or what a draft says.
    """

    job: Job
    generation: Generation
    row: int
    position: int
    guesses: tuple[int, ...] = ()
    is_draft: bool = False

    def next(self) -> Draw | None:
        """Count which guesses the output has taken as computed; give the draw after them.

        None if something came that was not guessed.
        """
        if not self.guesses:
            return None
        sequence = self.job.sequences[0]
        came = sequence.tokens.view[self.position + 1 :]
        num_right = common_len(came, np.array(self.guesses, np.int32))
        sequence.num_computed_tokens = self.position + 1 + num_right
        if self.is_draft:
            self.job.num_accepted_tokens += num_right
        if num_right < len(came):
            return None
        return self._replace(
            row=self.row + num_right,
            position=self.position + num_right,
            guesses=self.guesses[num_right:],
        )


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
        rows = wanted(chunk)
        start, end = end, end + len(rows)
        if start == end:
            continue
        job = jobs[chunk.sequence.request_id]
        if job.generation is None:
            scores.append(Score(chunk, slice(start, end)))
        else:
            draws.append(_first_draw(chunk, job, job.generation, start, rows.start))
    return draws, scores


def _first_draw(chunk: Chunk, job: Job, generation: Generation, row: int, first: int) -> Draw:
    """Give the draw from the first of a chunk's wanted rows, which is `row` of the logits."""
    position = chunk.start + first
    guesses = chunk.draft
    if position + 1 < chunk.end:
        guesses = (*chunk.sequence.tokens.view[position + 1 : chunk.end].tolist(), *guesses)
    return Draw(job, generation, row, position, guesses, bool(chunk.draft))


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
        self,
        draws: Sequence[Draw],
        rows: Sequence[Prepared],
        logits: Logits,
        largest_ids: Sequence[int],
    ) -> list[int | RequestError]:
        """Give a token for each draw, or what is wrong with that output alone.

        `largest_ids` are the runner's, for all rows of the logits.
        """
        found: list[int | RequestError] = []
        left: list[tuple[int, int, SampleRow]] = []  # place in `found`, row of the logits, how
        for draw, row in zip(draws, rows, strict=True):
            if isinstance(row, RequestError):
                found.append(row)
                continue
            token_id = largest_ids[draw.row] if largest_ids else NOT_FINITE
            if not self._takes(row, token_id):
                left.append((len(found), draw.row, row))
            found.append(token_id)
        if left:
            self._sample(left, logits, found)
        return found

    def _takes(self, row: SampleRow, largest_id: int) -> bool:
        """Say whether what has the largest logit of all is what is drawn."""
        if not row.is_greedy or not 0 <= largest_id < self._tokenizer.vocab_size:
            return False
        if largest_id in self._absent_ids or not row.allows(largest_id):
            return False
        return not (row.forbid_eos and largest_id in self._tokenizer.eos_token_ids)

    def _sample(
        self,
        rows: list[tuple[int, int, SampleRow]],
        logits: Logits,
        found: list[int | RequestError],
    ) -> None:
        drawn = sample(
            _rows(logits, [number for _, number, _ in rows]),
            [row for _, _, row in rows],
            self._tokenizer.vocab_size,
            self._tokenizer.eos_token_ids,
            self._absent_ids,
        )
        for (place, _, _), result in zip(rows, drawn, strict=True):
            found[place] = result


def _prepared(draw: Draw) -> Prepared:
    try:
        return draw.generation.row()
    except Exception as e:  # a mask over its budget, or a bug in a grammar
        return as_request_error(e)


def _rows(logits: Logits, numbers: list[int]) -> Logits:
    """Give some rows: a view where they lie side by side, else a copy."""
    first, end = numbers[0], numbers[-1] + 1
    return logits[first:end] if len(numbers) == end - first else logits[numbers]
