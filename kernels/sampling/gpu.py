"""Draw tokens on the device of the logits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .. import device
from . import reference
from .rows import DEAD_END, POINTS, DrawRow


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

    Refused tokens are -inf. Triton's sums are fp32: a draw near a boundary may differ.
    """
    if device.uses_triton(logits):
        from . import triton

        return triton.draw(logits, rows)
    return draw_as_defined(logits, rows)


def draw_as_defined(logits: Tensor, rows: SamplingRows) -> Tensor:
    """Draw as `reference.draw` does."""
    known = np.full(-(-logits.shape[1] // 32), -1, np.int32)
    columns = (rows.temperature, rows.top_k, rows.top_p, rows.min_p, rows.point)
    settings = [
        DrawRow(known, None, temperature, int(top_k), top_p, min_p, int(point * POINTS))
        for temperature, top_k, top_p, min_p, point in zip(
            *(c.tolist() for c in columns), strict=True
        )
    ]
    drawn = reference.draw(logits.float().cpu().numpy(), settings)
    # A row of nothing but refused tokens counts as not finite there.
    found = [max(token, DEAD_END) for token in drawn]
    return torch.tensor(found, dtype=torch.int64, device=logits.device)
