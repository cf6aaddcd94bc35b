"""Draw the rows of a step where their logits lie: one kernel, one transfer of token ids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..kernels.mask import apply_bitmask
from ..kernels.sampling import SamplingRows, draw
from .sequence import Int32, SamplingParams


def draw_rows(
    logits: Tensor,  # [r, width]; row i is drawn for params[i]
    bitmask: Int32,  # [r, ceil(width / 32)] the tokens that each row may take
    params: Sequence[SamplingParams],
    points: Sequence[float],  # in [0, 1)
    greedy_below: float,
    even_above: float,
) -> list[int]:
    """Draw one token a row; -1 where the mask leaves none. `logits`, fp32, are overwritten.

    A temperature under `greedy_below` takes the largest logit, one over `even_above` makes all
    even. Sums are fp32, so that a draw near a boundary may differ from the CPU's.
    """
    device = logits.device
    columns = np.array(
        [
            (1.0, 1, 1.0, 0.0, 0.0)
            if one.temperature < greedy_below
            else (min(one.temperature, even_above), max(one.top_k, 0), one.top_p, one.min_p, point)
            for one, point in zip(params, points, strict=True)
        ],
        np.float64,
    ).T
    columns[1] = np.minimum(columns[1], logits.shape[1])
    # The largest fp32 under 1: a point that rounds to 1 would lie behind the last token.
    columns[4] = np.minimum(columns[4], 1 - 2.0**-24)
    rows = torch.arange(len(logits), device=device)
    apply_bitmask(logits, torch.from_numpy(bitmask).to(device), rows)
    settings = torch.from_numpy(columns.astype(np.float32)).to(device)
    found = draw(
        logits,
        SamplingRows(settings[0], settings[1].int(), settings[2], settings[3], settings[4]),
    )
    token_ids: list[int] = found.tolist()
    return token_ids
