"""The tokens that a step draws: which rows of its logits, for which outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .errors import RequestError, as_request_error
from .generation import Generation
from .job import Job
from .model.interface import Tokenizer
from .sample import SampleRow, sample


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

    def draw(self, draws: Sequence[Draw], logits: torch.Tensor) -> list[int | RequestError]:
        """Give a token for each draw, or what is wrong with that output alone."""
        found: list[int | RequestError | None] = [None] * len(draws)
        places: list[int] = []
        rows: list[SampleRow] = []
        for place, draw in enumerate(draws):
            try:
                rows.append(draw.generation.row())
                places.append(place)
            except Exception as e:  # a mask over its budget, or a bug in a grammar
                found[place] = as_request_error(e)
        drawn = sample(
            logits[[draws[place].row for place in places]],
            rows,
            self._tokenizer.vocab_size,
            self._tokenizer.eos_token_ids,
            self._absent_ids,
            may_overwrite=True,  # indexed by a list: a copy
        )
        for place, result in zip(places, drawn, strict=True):
            found[place] = result
        return [result for result in found if result is not None]
