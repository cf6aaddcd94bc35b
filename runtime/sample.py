"""Draw the next tokens from logits, one row at a time.

The order, for every row: mask (ids past the vocabulary, ids without a token, the
grammar's bitmask, forbidden end tokens), temperature, top-k, top-p, min-p, one uniform
draw. The uniform is a hash of (seed, position), so neither the place in the batch nor
the other rows change a result.

Greedy rows look at the model's favourite first; only where the mask forbids it is the
row looked at again. So masks cost a greedy row nothing as long as the model obeys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from ..kernels.device import uses_triton
from ..kernels.mask import apply_bitmask
from .errors import RequestError
from .grammar.bits import mask_len
from .grammar.spec import Bitmask
from .sample_gpu import draw_rows
from .sequence import Int32, Int64, SamplingParams

GREEDY_BELOW = 1e-5  # a temperature under this is greedy: dividing by it would overflow
EVEN_ABOVE = 1e30  # a temperature over this makes all even; more does not fit float32
ROWS_AT_ONCE = 64  # rows scored together; bounds memory at rows x vocabulary

Float32: TypeAlias = npt.NDArray[np.float32]
Bools: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SampleRow:
    """How one row of the logits is drawn. `position` counts the output's tokens from 0."""

    params: SamplingParams
    seed: int
    position: int
    mask: Bitmask | None = None
    forbid_eos: bool = False


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """Which ids may come at all."""

    size: int
    eos_ids: Collection[int]
    absent_ids: Collection[int]

    def allows(self, token_id: int, row: SampleRow) -> bool:
        """Say whether `row` may take `token_id`, which is under `size`."""
        if token_id in self.absent_ids or (row.forbid_eos and token_id in self.eos_ids):
            return False
        return row.mask is None or _has_bit(row.mask, token_id)

    def candidates(self, row: SampleRow) -> Int64 | None:
        """Give the ids that `row` may take, ascending; None for all."""
        banned = self.banned(row)
        if row.mask is None and not banned:
            return None
        allowed = np.ones(self.size, np.bool_) if row.mask is None else _unpack(row.mask, self.size)
        allowed[banned] = False
        return np.flatnonzero(allowed)

    def banned(self, row: SampleRow) -> list[int]:
        """Give the ids that `row` may not take whatever its mask says."""
        banned = [*self.absent_ids, *(self.eos_ids if row.forbid_eos else ())]
        return [i for i in banned if i < self.size]


def sample(
    logits: torch.Tensor,
    rows: Sequence[SampleRow],
    vocab_size: int,
    eos_ids: Collection[int],
    absent_ids: Collection[int] = frozenset(),
    *,
    may_overwrite: bool = False,
) -> list[int | RequestError]:
    """Draw one token for each row of `logits` [r, width >= 1].

    `absent_ids` are the ids under `vocab_size` that have no token at all; they and ids
    past `vocab_size` are never drawn. Pass sets. `logits` is not changed, unless it
    `may_overwrite`, which saves a copy. A row that cannot be drawn gives its RequestError
    (non_finite_logits, grammar_dead_end) in its place; the others are untouched.
    """
    if not rows:
        return []
    ids = _Vocabulary(min(vocab_size, logits.shape[1]), eos_ids, absent_ids)
    usable = logits[:, : ids.size]
    best, best_ids = usable.max(dim=1)  # NaN wins, ties go to the lowest id
    peaks: list[float] = best.tolist()
    favourites: list[int] = best_ids.tolist()
    drawn = [_look(rows[i], ids, peaks[i], favourites[i]) for i in range(len(rows))]
    rest = [i for i, token in enumerate(drawn) if token is None]
    if rest and uses_triton(logits):
        for i, token in zip(rest, _draw_together(usable, rows, rest, ids), strict=True):
            drawn[i] = token
    masked = [i for i, row in enumerate(rows) if drawn[i] is None and _is_wide(row)]
    if masked:
        usable = usable.to(torch.float32, copy=not may_overwrite)
        _mask(usable, rows, masked)
    return [
        _draw_row(usable[i], rows[i], ids) if token is None else token
        for i, token in enumerate(drawn)
    ]


def gather_logprobs(logits: torch.Tensor, token_ids: Sequence[int], vocab_size: int) -> list[float]:
    """Give log P(token_ids[i]) under row i of `logits` [r, width], over ids < `vocab_size`.

    Works in chunks of rows, so memory stays at a few rows of the vocabulary.

    Raises: RequestError (non_finite_logits; invalid_request for an id past the vocabulary).
    """
    size = min(vocab_size, logits.shape[1])
    if any(not 0 <= i < size for i in token_ids):
        raise RequestError("invalid_request", f"a token id to score is not under {size}")
    found: list[float] = []
    for start in range(0, len(token_ids), ROWS_AT_ONCE):
        wanted = torch.tensor(token_ids[start : start + ROWS_AT_ONCE], device=logits.device)
        chunk = logits[start : start + len(wanted), :size].float()
        peak = chunk.amax(dim=1, keepdim=True)
        if not bool(torch.isfinite(peak).all()):
            raise RequestError("non_finite_logits", "non-finite logits while scoring")
        total = (chunk - peak).exp_().sum(dim=1, dtype=torch.float64).log_()
        picked = (chunk.gather(1, wanted[:, None]) - peak)[:, 0]
        found.extend((picked.double() - total).tolist())
    return found


def uniform(seed: int, position: int) -> float:
    """Give the number in [0, 1) that belongs to (seed, position): 53 bits of a hash."""
    digest = hashlib.blake2b(f"{seed}/{position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def _look(
    row: SampleRow, ids: _Vocabulary, peak: float, favourite: int
) -> int | RequestError | None:
    """Settle a row by its largest logit and that one's id; None where that does not do."""
    if not np.isfinite(peak):
        message = (
            f"non-finite logits at step {row.position}: the model gave NaN or infinities;"
            " load it in a wider dtype, or check its weights"
        )
        return RequestError("non_finite_logits", message)
    return favourite if _is_greedy(row) and ids.allows(favourite, row) else None


def _is_greedy(row: SampleRow) -> bool:
    return row.params.temperature < GREEDY_BELOW


def _is_wide(row: SampleRow) -> bool:
    """Say whether the row's mask goes over its logits: it is greedy, and of many ids.

    Other rows gather their candidates: for few ids that is less work, and a draw needs it.
    """
    if row.mask is None or not _is_greedy(row):
        return False
    return bool(2 * np.count_nonzero(row.mask) > len(row.mask))


def _mask(logits: torch.Tensor, rows: Sequence[SampleRow], chosen: list[int]) -> None:
    """Set what the masks of the chosen rows refuse, or lack, to -inf, in place."""
    bitmask = np.zeros((len(chosen), mask_len(logits.shape[1])), np.int32)
    for words, i in zip(bitmask, chosen, strict=True):
        mask = rows[i].mask
        if mask is not None:
            words[: len(mask)] = mask[: len(words)]
    device = logits.device
    row_ids = torch.tensor(chosen, device=device)
    apply_bitmask(logits, torch.from_numpy(bitmask).to(device), row_ids)


def _draw_together(
    logits: torch.Tensor, rows: Sequence[SampleRow], chosen: list[int], ids: _Vocabulary
) -> list[int | RequestError]:
    """Draw the chosen rows on the device of the logits."""
    bitmask: Int32 = np.zeros((len(chosen), -(-ids.size // 32)), np.int32)
    for words, i in zip(bitmask, chosen, strict=True):
        mask = rows[i].mask
        allowed = np.zeros(32 * len(words), np.bool_)
        allowed[: ids.size] = True if mask is None else _unpack(mask, ids.size)
        allowed[ids.banned(rows[i])] = False
        words[:] = np.packbits(allowed, bitorder="little").view("<i4")
    wanted = torch.tensor(chosen, device=logits.device)
    found = draw_rows(
        logits.index_select(0, wanted).float(),
        bitmask,
        [rows[i].params for i in chosen],
        [uniform(rows[i].seed, rows[i].position) for i in chosen],
        GREEDY_BELOW,
        EVEN_ABOVE,
    )
    return [
        token if token >= 0 else _dead_end(rows[i]) for i, token in zip(chosen, found, strict=True)
    ]


def _dead_end(row: SampleRow) -> RequestError:
    message = f"no token may follow at step {row.position}: the grammar (or min_tokens) forbids"
    return RequestError("grammar_dead_end", f"{message} every token the model can give")


def _draw_row(logits: torch.Tensor, row: SampleRow, ids: _Vocabulary) -> int | RequestError:
    """Draw one row that its favourite did not settle."""
    values: Float32 = logits.float().cpu().numpy()
    if _is_wide(row):
        values[ids.banned(row)] = -np.inf  # these are ours: `_mask` wrote to them
        allowed, kept = None, values
    else:
        allowed = ids.candidates(row)
        kept = values if allowed is None else values[allowed]
    if not len(kept) or kept.max() == -np.inf:
        return _dead_end(row)
    index = int(kept.argmax()) if _is_greedy(row) else _draw(kept, row)
    return index if allowed is None else int(allowed[index])


def _draw(values: Float32, row: SampleRow) -> int:
    """Draw an index of `values`, of which one at least is finite."""
    params = row.params
    kept: Int64 | None = None
    if 0 < params.top_k < len(values):
        threshold = np.partition(values, -params.top_k)[-params.top_k]
        kept = _largest(values, threshold, params.top_k)
        values = values[kept]
    with np.errstate(over="ignore"):  # -inf is right there
        scaled = (values - values.max()) / np.float32(min(params.temperature, EVEN_ABOVE))
    weights = np.exp(scaled)
    if params.top_p < 1.0:
        inside = _inside_top_p(weights, params.top_p)
        weights = weights[inside]
        kept = inside if kept is None else kept[inside]
    if params.min_p > 0.0:
        weights[weights < params.min_p] = 0.0  # the largest weight is 1
    index = _pick(weights, uniform(row.seed, row.position))
    return index if kept is None else int(kept[index])


def _largest(values: Float32, threshold: np.float32, num: int) -> Int64:
    """Give the indices of the `num` values of `threshold` or more; ties go to the lowest."""
    reaching = np.flatnonzero(values >= threshold)
    if len(reaching) == num:
        return reaching
    level = np.flatnonzero(values[reaching] == threshold)
    return np.delete(reaching, level[num - len(reaching) :])


def _inside_top_p(weights: Float32, top_p: float) -> Int64:
    """Give the indices of the smallest set, heaviest first, that holds `top_p` of the weight.

    Weights under (1 - top_p) / n of the whole sum to less than what may be left out, so
    they are outside without being sorted.
    """
    total = float(weights.sum(dtype=np.float64))
    heavy = np.sort(weights[weights >= (1.0 - top_p) * total / len(weights)])[::-1]
    sums = np.cumsum(heavy, dtype=np.float64)
    num = min(int(np.searchsorted(sums, top_p * total)) + 1, len(heavy))
    return _largest(weights, heavy[num - 1], num)


def _pick(weights: Float32, point: float) -> int:
    """Give the index in which `point` of the whole weight falls."""
    sums = np.cumsum(weights, dtype=np.float64)
    index = int(np.searchsorted(sums, point * sums[-1], side="right"))
    if index == len(weights):  # rounding: the last that has weight
        index = int(np.flatnonzero(weights)[-1])
    return index


def _has_bit(mask: Bitmask, token_id: int) -> bool:
    word, bit = divmod(token_id, 32)
    return word < len(mask) and bool(int(mask[word]) >> bit & 1)


def _unpack(mask: Bitmask, size: int) -> Bools:
    """Give the mask's bits as [size] booleans; bits that it lacks are not set."""
    words = np.ascontiguousarray(mask, dtype="<i4").view(np.uint8)
    bits = np.unpackbits(words, count=min(size, 8 * len(words)), bitorder="little")
    allowed = np.zeros(size, np.bool_)
    allowed[: len(bits)] = bits
    return allowed
