"""The definition of drawing a token: temperature, top-k, top-p, min-p, one uniform number."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class SamplingRows:
    """How each of `r` rows is drawn, on the device of the logits."""

    temperature: Tensor  # [r] fp32, over 0
    top_k: Tensor  # [r] int32; 0 keeps every token
    top_p: Tensor  # [r] fp32; 1 keeps every token
    min_p: Tensor  # [r] fp32; 0 keeps every token
    point: Tensor  # [r] fp32 in [0, 1)


def draw(logits: Tensor, rows: SamplingRows) -> Tensor:
    """Draw a token of each row of `logits` [r, width] fp32; int64 [r], -1 where none may come.

    The order is top-k, temperature, top-p, min-p, as in the runtime's sampler: the smallest
    set, heaviest first and of equals the lowest id, and `point` of what is left in id order.
    Refused tokens are -inf.
    """
    found = [
        _draw_row(
            logits[i].double(),
            float(rows.temperature[i]),
            int(rows.top_k[i]),
            float(rows.top_p[i]),
            float(rows.min_p[i]),
            float(rows.point[i]),
        )
        for i in range(len(logits))
    ]
    return torch.tensor(found, dtype=torch.int64, device=logits.device)


def _draw_row(
    values: Tensor, temperature: float, top_k: int, top_p: float, min_p: float, point: float
) -> int:
    if not bool((values > -torch.inf).any()):
        return -1
    weights = ((values - values.max()) / temperature).exp()
    if top_k > 0:
        weights[values.sort(descending=True, stable=True).indices[top_k:]] = 0
    if top_p < 1:
        heaviest, ids = weights.sort(descending=True, stable=True)
        before = heaviest.cumsum(0) - heaviest  # what the heavier ones hold
        weights[ids[before > top_p * heaviest.sum()]] = 0
    weights[weights < min_p] = 0
    sums = weights.cumsum(0)
    index = int(torch.searchsorted(sums, point * sums[-1], right=True))
    return min(index, int(weights.nonzero()[-1]))
