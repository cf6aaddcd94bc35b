"""Draw the next tokens from logits, and score given ones.

The order, for every row: mask (ids past the vocabulary, ids without a token, the
grammar's bitmask, forbidden end tokens), top-k, temperature, top-p, min-p, one uniform
draw; kernels/sampling has the definition. The uniform is a hash of (seed, position), so
neither the place in the batch nor the other rows change a result.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from ..kernels.device import uses_triton
from ..kernels.sampling import NOT_FINITE, POINTS, DrawRow, draw, logprobs
from .errors import RequestError
from .grammar.spec import Bitmask
from .model.interface import Logits
from .sequence import SamplingParams

GREEDY_BELOW: Final = 1e-5  # a temperature under this is greedy: dividing by it would overflow
EVEN_ABOVE: Final = 1e30  # a temperature over this makes all even; more does not fit float32


class SampleRow(NamedTuple):  # one an output and step: a dataclass takes three times as long
    """How one row of the logits is drawn. `position` counts the output's tokens from 0."""

    params: SamplingParams
    seed: int
    position: int
    mask: Bitmask | None = None
    forbid_eos: bool = False

    @property
    def is_greedy(self) -> bool:
        """True if the largest logit wins."""
        return self.params.temperature < GREEDY_BELOW

    def allows(self, token_id: int) -> bool:
        """Say whether the mask lets a token come."""
        if self.mask is None:
            return True
        word = token_id // 32
        return word < len(self.mask) and int(self.mask[word]) >> token_id % 32 & 1 == 1


def sample(
    logits: Logits,
    rows: Sequence[SampleRow],
    vocab_size: int,
    eos_ids: Collection[int],
    absent_ids: Collection[int] = frozenset(),
) -> list[int | RequestError]:
    """Draw one token for each row of `logits` [r, width >= 1], which are not changed.

    `absent_ids` are the ids under `vocab_size` that have no token at all; they and ids
    past `vocab_size` are never drawn. A row that cannot be drawn gives its RequestError
    (non_finite_logits, grammar_dead_end) in its place; the others are untouched.
    """
    if not rows:
        return []
    size = min(vocab_size, logits.shape[1])
    absent, ends, nothing = frozenset(absent_ids), frozenset(eos_ids), frozenset[int]()
    settings = [
        _settings(row, _plain(size, absent, ends if row.forbid_eos else nothing)) for row in rows
    ]
    usable = logits[:, :size]
    if isinstance(usable, np.ndarray):
        found = draw(usable, settings)
    elif uses_triton(usable):
        from .sample_gpu import draw_rows

        found = draw_rows(usable, settings)
    else:
        found = draw(usable.float().cpu().numpy(), settings)
    return [
        token if token >= 0 else _fault(token, row) for token, row in zip(found, rows, strict=True)
    ]


def gather_logprobs(
    logits: Logits, token_ids: Sequence[Sequence[int]], vocab_size: int
) -> list[list[float]]:
    """Give log P of each of token_ids[i] under row i of `logits`, over ids < `vocab_size`.

    Raises: RequestError (non_finite_logits; invalid_request for an id past the vocabulary).
    """
    size = min(vocab_size, logits.shape[1])
    if any(not 0 <= i < size for ids in token_ids for i in ids):
        raise RequestError("invalid_request", f"a token id to score is not under {size}")
    usable = logits[: len(token_ids), :size]
    if isinstance(usable, np.ndarray):
        found = logprobs(usable, token_ids)
    elif usable.device.type == "cpu":
        found = logprobs(usable.float().numpy(), token_ids)
    else:
        from .sample_gpu import gather_rows

        found = gather_rows(usable, token_ids)
    if any(math.isnan(each) for row in found for each in row):
        raise RequestError("non_finite_logits", "non-finite logits while scoring")
    return found


def point_of(seed: int, position: int) -> int:
    """Give the number under POINTS that belongs to (seed, position): 53 bits of a hash."""
    digest = hashlib.blake2b(f"{seed}/{position}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 11


def share_of(seed: int, position: int) -> float:
    """Give the same number as a share of the whole: from 0 to 1, without 1."""
    return point_of(seed, position) / POINTS


def _settings(row: SampleRow, plain: DrawRow) -> DrawRow:
    params, known = row.params, plain.known
    if row.is_greedy:
        return plain if row.mask is None else DrawRow(known, row.mask)
    return DrawRow(
        known,
        row.mask,
        temperature=min(params.temperature, EVEN_ABOVE),
        top_k=min(max(params.top_k, 0), 32 * len(known)),
        top_p=params.top_p,
        min_p=params.min_p,
        point=point_of(row.seed, row.position),
    )


@lru_cache(maxsize=8)  # an engine asks for two
def _plain(size: int, absent: frozenset[int], ends: frozenset[int]) -> DrawRow:
    """Give the greedy draw from all ids under `size` but those."""
    bits = np.zeros(-(-size // 32) * 32, np.uint8)
    bits[:size] = 1
    bits[[i for i in absent | ends if i < size]] = 0
    words = np.packbits(bits, bitorder="little").view("<i4").astype(np.int32)
    words.flags.writeable = False
    return DrawRow(words)


def _fault(code: int, row: SampleRow) -> RequestError:
    if code == NOT_FINITE:
        message = (
            f"non-finite logits at step {row.position}: the model gave NaN or infinities;"
            " load it in a wider dtype, or check its weights"
        )
        return RequestError("non_finite_logits", message)
    message = f"no token may follow at step {row.position}: the grammar (or min_tokens) forbids"
    return RequestError("grammar_dead_end", f"{message} every token the model can give")
