"""The definition of a token bitmask applied to logits."""

from __future__ import annotations

import torch
from torch import Tensor


def apply_bitmask(logits: Tensor, bitmask: Tensor, rows: Tensor) -> None:
    """Set the refused tokens of row `rows[i]` of `logits` to -inf, in place.

    `logits` is float32 [n, width]; `bitmask` int32 [m, ceil(width / 32)], where bit t % 32 of word
    t // 32 allows token t; `rows` int64 [m], distinct. Other rows and allowed tokens stay as they
    are, NaN included; bits past the width are ignored.
    """
    shifts = torch.arange(32, dtype=torch.int32, device=bitmask.device)
    bits = (bitmask[:, :, None] >> shifts) & 1  # [m, words, 32]
    is_refused = bits.flatten(1)[:, : logits.shape[1]] == 0  # [m, width]
    logits[rows] = logits[rows].masked_fill(is_refused, -torch.inf)
