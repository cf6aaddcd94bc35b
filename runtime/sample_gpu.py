"""Draw and score the rows of a step where their logits lie, on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from ..kernels.mask import apply_bitmask
from ..kernels.sampling import NOT_FINITE, POINTS, DrawRow
from ..kernels.sampling.gpu import SamplingRows, draw

ROWS_AT_ONCE = 64  # rows scored together; bounds memory at rows x vocabulary


def draw_rows(logits: Tensor, rows: Sequence[DrawRow]) -> list[int]:
    """Draw one token a row of `logits` [r, width]; DEAD_END or NOT_FINITE where none can be.

    Greedy rows look at the model's favourite first; only where the mask forbids it is the row
    looked at again. So masks cost a greedy row nothing as long as the model obeys.
    """
    peaks, favourites = logits.max(dim=1)  # NaN wins, ties go to the lowest id
    drawn = [
        _look(row, peak, favourite)
        for row, peak, favourite in zip(rows, peaks.tolist(), favourites.tolist(), strict=True)
    ]
    rest = [i for i, token in enumerate(drawn) if token is None]
    masked: Iterator[int] = iter(())
    if rest:
        chosen = logits.index_select(0, torch.tensor(rest, device=logits.device)).float()
        masked = iter(_draw_masked(chosen, [rows[i] for i in rest]))
    return [next(masked) if token is None else token for token in drawn]


def _look(row: DrawRow, peak: float, favourite: int) -> int | None:
    """Settle a row by its largest logit and that one's id; None where that does not do."""
    if not np.isfinite(peak):
        return NOT_FINITE
    word, bit = divmod(favourite, 32)
    is_allowed = int(row.allowed()[word]) >> bit & 1
    return favourite if row.temperature == 0.0 and is_allowed else None


def _draw_masked(logits: Tensor, rows: Sequence[DrawRow]) -> list[int]:
    """Draw rows of `logits`, fp32, which are overwritten: one kernel, one transfer of token ids.

    Sums are fp32, so that a draw near a boundary may differ from the CPU's.
    """
    device = logits.device
    columns = np.array(
        [
            (1.0, 1, 1.0, 0.0, 0.0)
            if row.temperature == 0.0
            else (row.temperature, row.top_k, row.top_p, row.min_p, row.point / POINTS)
            for row in rows
        ],
        np.float64,
    ).T
    columns[1] = np.minimum(columns[1], logits.shape[1])
    # The largest fp32 under 1: a point that rounds to 1 would lie behind the last token.
    columns[4] = np.minimum(columns[4], 1 - 2.0**-24)
    bitmask = torch.from_numpy(np.stack([row.allowed() for row in rows])).to(device)
    apply_bitmask(logits, bitmask, torch.arange(len(logits), device=device))
    # In C's order: the kernel takes a setting's numbers to lie side by side.
    settings = torch.from_numpy(columns.astype(np.float32, order="C")).to(device)
    found = draw(
        logits,
        SamplingRows(settings[0], settings[1].int(), settings[2], settings[3], settings[4]),
    )
    token_ids: list[int] = found.tolist()
    return token_ids


def gather_rows(logits: Tensor, token_ids: Sequence[Sequence[int]]) -> list[list[float]]:
    """Give log P of each of token_ids[i] under row i of `logits`; NaN where these are not finite.

    Works in chunks of rows, so memory stays at a few rows of the vocabulary.
    """
    found: list[list[float]] = []
    for start in range(0, len(token_ids), ROWS_AT_ONCE):
        ids = token_ids[start : start + ROWS_AT_ONCE]
        width = max(map(len, ids))
        padded = [[*row, *[0] * (width - len(row))] for row in ids]
        wanted = torch.tensor(padded, dtype=torch.int64, device=logits.device)
        chunk = logits[start : start + len(wanted)].float()
        peak = chunk.amax(dim=1, keepdim=True)
        total = (chunk - peak).exp_().sum(dim=1, dtype=torch.float64).log_()
        picked = (chunk.gather(1, wanted) - peak).double() - total[:, None]
        rows = torch.where(peak.isfinite(), picked, torch.nan).tolist()
        found.extend(row[: len(asked)] for row, asked in zip(rows, ids, strict=True))
    return found
