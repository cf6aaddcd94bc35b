"""How many guesses a step takes along: as many as pay for their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..config import DEFAULT_DRAFT, EngineConfig
from ..job import Job
from ..model.interface import Model
from ..model.native import NativeRunner
from ..plan import Chunk, Plan
from ..scheduler import Scheduler
from ..sequence import Int32
from .guesser import Guess, Guesser
from .lookup import alike_tokens

# What a pass over so many rows costs, in passes over one row; in between it grows evenly. For
# the CPU's own kernels, over 400 tokens of context, with what drawing its rows takes.
PASS_COSTS = {1: 1.0, 2: 1.08, 4: 1.38, 5: 1.62, 8: 2.0, 16: 3.3, 32: 6.3, 512: 80.0}
MAX_OUTPUTS = 8  # in a step with drafts: with more, rows cost as much as passes
MIN_GAIN = 1.05  # tokens a second that a draft must promise, to those without it
MIN_REACH = 0.15  # of a guess, for it to be offered
MAX_ROWS = 16  # of an output in a step, for it to get a draft

_COSTS = np.interp(range(max(PASS_COSTS) + 1), [*PASS_COSTS], [*PASS_COSTS.values()]).tolist()


@dataclass(frozen=True, slots=True)
class _Offer:
    """A guess of one of the step's chunks."""

    index: int
    guess: Guess


class Speculator:
    """Puts drafts in plans.

    A step gets those guesses that promise the most tokens a second: the likeliest come first,
    and each is one row more for the pass.
    """

    def __init__(self, model: Model, config: EngineConfig) -> None:
        self._model = model
        is_native = isinstance(model.runner, NativeRunner)
        chosen = config.max_draft_tokens
        self._max_draft = (DEFAULT_DRAFT if is_native else 0) if chosen is None else chosen
        self._known_alike: Int32 | None = None

    def extend(self, plan: Plan, jobs: Mapping[str, Job], scheduler: Scheduler) -> None:
        """Give the chunks of a plan their drafts, of what room is left."""
        if not self._max_draft or not plan.budget or len(plan.chunks) > MAX_OUTPUTS:
            return
        outputs = [i for i, chunk in enumerate(plan.chunks) if _is_at_end(chunk, jobs)]
        offers = [offer for i in outputs for offer in self._offers(i, plan, jobs)]
        if not offers:
            return
        offers.sort(key=lambda offer: -offer.guess.reach)  # stable: in order within an output
        num_rows = sum(plan.chunks[i].num_rows for i in outputs)
        taken = offers[: _num_paying(offers, len(outputs), num_rows)]
        for i in dict.fromkeys(offer.index for offer in taken):
            chunk = plan.chunks[i]
            draft = [offer.guess.token_id for offer in taken if offer.index == i]
            num_lent = scheduler.lend(chunk, len(draft), plan)
            plan.chunks[i] = chunk._replace(draft=tuple(draft[:num_lent]))
            jobs[chunk.sequence.request_id].num_drafted_tokens += num_lent

    def _offers(self, index: int, plan: Plan, jobs: Mapping[str, Job]) -> list[_Offer]:
        sequence = plan.chunks[index].sequence
        job = jobs[sequence.request_id]
        assert job.generation is not None
        if job.guesser is None:
            job.guesser = Guesser(sequence.tokens.view, self._alike())
        if job.guesser.next_chance < MIN_REACH:
            return []
        follower = job.generation.follower()
        follower.limit = min(follower.limit, self._max_draft)
        return [_Offer(index, guess) for guess in job.guesser.guess(follower, MIN_REACH)]

    def _alike(self) -> Int32:
        if self._known_alike is None:
            self._known_alike = alike_tokens(
                self._model.tokenizer.token_bytes, self._model.runner.limits.logits_width
            )
        return self._known_alike


def pass_cost(num_rows: int) -> float:
    """Give what a pass over `num_rows` rows costs, in passes over one; the last figure beyond."""
    return _COSTS[min(num_rows, len(_COSTS) - 1)]


def _is_at_end(chunk: Chunk, jobs: Mapping[str, Job]) -> bool:
    """Say whether the chunk is what an output wrote last."""
    sequence = chunk.sequence
    if chunk.end < len(sequence.tokens) or chunk.end <= sequence.output_start:
        return False
    is_output = jobs[sequence.request_id].generation is not None
    return is_output and not sequence.is_healing and chunk.num_rows <= MAX_ROWS


def _num_paying(offers: list[_Offer], num_outputs: int, num_rows: int) -> int:
    """Count the first offers with which a step gives the most tokens a second."""
    best, best_rate = 0, MIN_GAIN * num_outputs / pass_cost(num_rows)
    num_tokens = float(num_outputs)
    for count, offer in enumerate(offers, 1):
        num_tokens += offer.guess.gain
        rate = num_tokens / pass_cost(num_rows + count)
        if rate > best_rate:
            best, best_rate = count, rate
    return best
