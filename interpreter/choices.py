"""How select decides: pure functions from log-probabilities to scores, probabilities, a winner.

A choice is the list of its tokens after the border that all choices share, with one
log-probability each. A choice whose tokens begin another choice's tokens ends there by an
*end marker*: what is left of the probability once the tokens that lead on to the other
choices have theirs. A choice without tokens is its end marker alone, in every method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from ..lang.ops import SelectMethod
from ..runtime.sample import GREEDY_BELOW

TokenIds: TypeAlias = Sequence[int]
Logprobs: TypeAlias = Sequence[float]

# Logits are float32: a smaller remainder of 1 - p is rounding, and log(0) would be no score.
_LEAST_REMAINDER = 1e-7
# Stands for -inf, with which differences and shares would be no numbers.
_LEAST_LOGPROB = -1e6


@dataclass(frozen=True, slots=True)
class Decision:
    """What a method made of the choices; `winner` is an index, ties go to the first."""

    winner: int
    scores: tuple[float, ...]
    probabilities: tuple[float, ...]  # softmax of the scores


def decide(
    method: SelectMethod,
    token_ids: Sequence[TokenIds],
    logprobs: Sequence[Logprobs],
    unconditional: Sequence[Logprobs] = (),
) -> Decision:
    """Score the choices by `method`; `logprobs` has one number for each token.

    The probabilities are the softmax of the scores. What they mean is the method's:

    - `sum`: the probability of each choice, given that the model writes one of them.
    - `token_length_normalized`: shares of the mean log-probability of a token; a ranking
      in which length does not count, not a probability of the text.
    - `greedy_token_selection`: odds at the token where a choice fell out of the walk.
    - `unconditional_likelihood_normalized`: shares of how much likelier, token for token,
      the text before makes each choice; `unconditional` has the log-probabilities without it.
    """
    scores = _scores(method, token_ids, _finite(logprobs), _finite(unconditional))
    winner = max(range(len(scores)), key=scores.__getitem__)  # max keeps the first of equals
    return Decision(winner, tuple(scores), tuple(softmax(scores)))


def choose(decision: Decision, temperature: float, point: float) -> int:
    """Give the choice to take: the winner, or with a temperature the one that `point` draws.

    Each probability counts to the power of 1/temperature; `point` is from 0 to 1, without 1.
    """
    if temperature < GREEDY_BELOW:
        return decision.winner
    shares = accumulate(softmax([score / temperature for score in decision.scores]))
    last = len(decision.scores) - 1
    return next((i for i, share in enumerate(shares) if point < share), last)


def _scores(
    method: SelectMethod,
    token_ids: Sequence[TokenIds],
    logprobs: Sequence[Logprobs],
    unconditional: Sequence[Logprobs],
) -> list[float]:
    ends = end_logprobs(token_ids, logprobs)
    match method:
        case "sum":
            return [sum(row) + end for row, end in zip(logprobs, ends, strict=True)]
        case "token_length_normalized":
            return _means(logprobs, ends)
        case "greedy_token_selection":
            return greedy_margins(logprobs, ends)
        case "unconditional_likelihood_normalized":
            return _means(_differences(logprobs, unconditional), ends)


def end_logprobs(token_ids: Sequence[TokenIds], logprobs: Sequence[Logprobs]) -> list[float]:
    """Give the log-probability of each choice's end marker: 0 where no other choice goes on.

    Elsewhere log(1 - the sum of P(next token | the choice so far) over the distinct next
    tokens of the choices that go on); their rows have all these numbers.
    """
    next_tokens = _next_tokens(token_ids, logprobs)
    ends = []
    for ids in token_ids:
        following = next_tokens.get(tuple(ids), {})
        taken = math.fsum(math.exp(logprob) for logprob in following.values())
        ends.append(math.log(max(1.0 - taken, _LEAST_REMAINDER)) if following else 0.0)
    return ends


def _next_tokens(
    token_ids: Sequence[TokenIds], logprobs: Sequence[Logprobs]
) -> dict[tuple[int, ...], dict[int, float]]:
    """Give, for each whole choice that begins another one, the tokens that lead on."""
    found: dict[tuple[int, ...], dict[int, float]] = {tuple(ids): {} for ids in token_ids}
    for ids, row in zip(token_ids, logprobs, strict=True):
        whole = tuple(ids)
        for length in range(len(whole)):
            following = found.get(whole[:length])
            if following is not None:
                following[whole[length]] = row[length]
    return found


def greedy_margins(logprobs: Sequence[Logprobs], ends: Logprobs) -> list[float]:
    """Walk token by token, keeping the choices with the most likely token at each place.

    A choice that is shorter than the place is padded with its own mean, as in SGLang. A
    score is by how much a choice lost at the token where it fell out: 0 for those that
    never did, so the winner has the highest score.
    """
    means = _means(logprobs, ends)
    scores = [0.0] * len(logprobs)
    alive = list(range(len(logprobs)))
    for place in range(max(map(len, logprobs))):
        row = [_at(logprobs[i], place, means[i]) for i in alive]
        best = max(row)
        for i, logprob in zip(alive, row, strict=True):
            if logprob < best:
                scores[i] = logprob - best
        alive = [i for i, logprob in zip(alive, row, strict=True) if logprob == best]
        if len(alive) == 1:
            break
    return scores


def softmax(scores: Sequence[float]) -> list[float]:
    """Give probabilities in proportion to exp(score); the scores are finite."""
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def _finite(rows: Sequence[Logprobs]) -> list[list[float]]:
    return [[max(logprob, _LEAST_LOGPROB) for logprob in row] for row in rows]


def _means(rows: Sequence[Logprobs], ends: Logprobs) -> list[float]:
    return [sum(row) / len(row) if row else end for row, end in zip(rows, ends, strict=True)]


def _differences(
    logprobs: Sequence[Logprobs], unconditional: Sequence[Logprobs]
) -> list[list[float]]:
    return [
        [a - b for a, b in zip(row, without, strict=True)]
        for row, without in zip(logprobs, unconditional, strict=True)
    ]


def _at(row: Logprobs, place: int, padding: float) -> float:
    return row[place] if place < len(row) else padding
