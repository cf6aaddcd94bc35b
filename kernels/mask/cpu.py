"""The bitmask by numpy: no branch a token, and little work where few tokens are allowed."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

FEW_WORDS = 32  # a mask of no more words with a bit set is followed word by word

Float32: TypeAlias = npt.NDArray[np.float32]
Words: TypeAlias = npt.NDArray[np.int32]

# For each byte of a mask the bounds of its 8 tokens. fmin takes the number beside a NaN, so a
# NaN leaves an allowed token as it is and -inf wins over all else, a NaN logit included.
_BYTES = np.arange(256, dtype=np.uint8)[:, None]
_BOUNDS: Float32 = np.where(np.unpackbits(_BYTES, axis=1, bitorder="little"), np.nan, -np.inf)
_BOUNDS = _BOUNDS.astype(np.float32)  # [256, 8]
_WORD = np.arange(32)


def apply_bitmask(logits: Tensor, bitmask: Tensor, rows: Tensor) -> None:
    """Set the refused tokens of row `rows[i]` of `logits` to -inf, in place.

    Shapes and meaning are those of `reference.apply_bitmask`.
    """
    values: Float32 = logits.numpy()
    masks: Words = np.ascontiguousarray(bitmask.numpy(), dtype="<i4")
    for words, row in zip(masks, rows.tolist(), strict=True):
        if np.count_nonzero(words) <= FEW_WORDS:
            _keep_few(values[row], words)
        else:
            _lower(values[row], words)


def _keep_few(values: Float32, words: Words) -> None:
    """Set all to -inf and put the allowed ones back."""
    at = (words != 0).nonzero()[0]  # comparing first is twice as fast
    bits = np.unpackbits(words[at].view(np.uint8), bitorder="little").view(np.bool_)
    ids = (at[:, None] * 32 + _WORD).ravel()[bits]
    ids = ids[ids < len(values)]
    kept = values[ids]
    values.fill(-np.inf)
    values[ids] = kept


def _lower(values: Float32, words: Words) -> None:
    """Bound every value by what its bit says."""
    bounds = _BOUNDS.take(words.view(np.uint8), axis=0).ravel()
    np.fmin(values, bounds[: len(values)], out=values)
