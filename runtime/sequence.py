"""What the engine works on: requests in, sequences and batches inside, outputs out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import RequestCode, RequestError
from .grammar.spec import GrammarSpec

if TYPE_CHECKING:
    from .cache.node import Node

Int32: TypeAlias = npt.NDArray[np.int32]
Int64: TypeAlias = npt.NDArray[np.int64]
# The spans of a context that others may share, root first: a name, and where it ends in tokens.
Path: TypeAlias = tuple[tuple[int, int], ...]
FinishReason: TypeAlias = Literal["stop", "length", "cancelled", "error"]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are drawn.

    `max_tokens` None means up to the end of the context. `temperature` 0 is greedy.
    `top_k` 0 or -1 keeps every token. `stop` strings end the output, and are cut off from it
    unless `keep_stop` says otherwise.
    `heal` lets the output spell the prompt's last token anew, as part of a longer one.

    Raises: RequestError (invalid_request), naming the field.
    """

    max_tokens: int | None = None
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    keep_stop: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    ignore_eos: bool = False
    heal: bool = False

    def __post_init__(self) -> None:
        checks = (
            (self.max_tokens is None or self.max_tokens >= 0, "max_tokens", "0 or more"),
            (self.min_tokens >= 0, "min_tokens", "0 or more"),
            (0.0 <= self.temperature < float("inf"), "temperature", "0 or more, and finite"),
            (self.top_k >= -1, "top_k", "1 or more, or 0 or -1 for all"),
            (0.0 < self.top_p <= 1.0, "top_p", "over 0 and at most 1"),
            (0.0 <= self.min_p <= 1.0, "min_p", "from 0 to 1"),
            (all(self.stop), "stop", "strings that are not empty"),
        )
        for is_right, name, allowed in checks:
            if not is_right:
                value = getattr(self, name)
                raise RequestError("invalid_request", f"{name}={value!r}: {name} must be {allowed}")


@dataclass(frozen=True, slots=True)
class Hint:
    """What a client knows of a request's future. It changes no output: only what goes first,
    and what the cache keeps.

    `continues` is the request whose text this one goes on from, `num_consumers` will go on
    from this one. `remaining_tokens` are on the longest way from here to the end of the work,
    this output included.
    """

    continues: str | None = None
    num_consumers: int = 0
    remaining_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """Continue `prompt`. `seed` and the output position alone decide each draw."""

    id: str
    prompt: Int32  # [n], n >= 1
    sampling: SamplingParams = SamplingParams()
    grammar: GrammarSpec | None = None
    seed: int = 0
    namespace: str = ""
    hint: Hint | None = None


@dataclass(frozen=True, slots=True)
class ScoredText:
    """Tokens of which those from `score_from` (>= 1) on get a log-probability each."""

    token_ids: Int32  # [n], n > score_from
    score_from: int


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """Give log P(token | all before it) for the scored part of each text. One answer for all."""

    id: str
    texts: tuple[ScoredText, ...]
    namespace: str = ""
    hint: Hint | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and seconds of one request; `cached_tokens` of the prompt were not computed.

    `forced_tokens` of the output were not drawn: the grammar left no choice. A token that
    only spells the end of the prompt anew is none of the output. `drafted_tokens` were guessed
    and went through the model, of which `accepted_tokens` were drawn then.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    forced_tokens: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    drafted_tokens: int = 0
    accepted_tokens: int = 0


class Output(NamedTuple):  # one a sequence and step: a dataclass takes three times as long
    """What a step gave one request. The last one has `finish_reason`, and comes exactly once.

    `text` is new text since the output before. The last output also carries
    `token_ids`: the generated tokens that lie wholly before a stop string (and no end
    token), and `tail`: the text after them that still belongs to the output. With
    `is_healed` these tokens stand in place of the prompt's last one, whose bytes they spell
    first. A finished ScoreRequest carries `logprobs`, one tuple a text.
    """

    request_id: str
    text: str = ""
    finish_reason: FinishReason | None = None
    stop_reason: str | None = None  # the stop string that matched
    token_ids: tuple[int, ...] = ()
    tail: str = ""
    is_healed: bool = False
    logprobs: tuple[tuple[float, ...], ...] = ()
    usage: Usage = Usage()
    error_code: RequestCode | None = None
    error: str = ""


@dataclass(slots=True)
class Batch:
    """One forward pass: `T` new tokens of `n` sequences, laid end to end.

    K and V of a layer are stored at `slot_mapping`, then the copies are made, then the
    attention of that layer reads: so a sequence may share a block that another one fills
    in this same pass. Copies read nothing that another copy of the batch writes. Where the
    paths of two sequences begin alike, so do their contexts, K and V included.
    """

    token_ids: Int32  # [T]
    positions: Int32  # [T]
    slot_mapping: Int64  # [T] slot = block * block_size + offset
    cu_seqlens: Int32  # [n + 1] where each sequence's new tokens begin
    seq_lens: Int32  # [n] tokens in the context once this pass is done
    block_tables: Int32  # [n, max blocks], padded with 0
    copy_from: Int64  # [c] slots
    copy_to: Int64  # [c] slots
    logit_rows: Int64  # [r] rows of T whose logits are wanted
    sequences: tuple[object, ...] = field(default=())  # the engine's own, in order
    paths: tuple[Path, ...] = ()  # of each sequence; none: nothing is known to be shared


class Ints:
    """A growing array of int32."""

    __slots__ = ("_data", "_len")

    def __init__(self, values: Int32 | None = None) -> None:
        self._data: Int32 = np.empty(0, np.int32) if values is None else np.array(values, np.int32)
        self._len = len(self._data)

    def __len__(self) -> int:
        return self._len

    def __getitem__(self, index: int) -> int:
        """Give the value at `index`, from 0 on."""
        return self._data.item(index)

    @property
    def view(self) -> Int32:
        """The values, without a copy; writes go through. Valid until the next `extend`."""
        return self._data[: self._len]

    def append(self, value: int) -> None:
        """Add one value at the end; amortised O(1)."""
        self._reserve(self._len + 1)
        self._data[self._len] = value
        self._len += 1

    def extend(self, values: Int32 | tuple[int, ...] | list[int]) -> None:
        """Add values at the end; amortised O(len(values))."""
        end = self._len + len(values)
        self._reserve(end)
        self._data[self._len : end] = values
        self._len = end

    def cut(self, length: int) -> None:
        """Keep the first `length` values."""
        self._len = min(self._len, length)

    def clear(self) -> None:
        """Drop all values."""
        self._len = 0

    def _reserve(self, end: int) -> None:
        if end > len(self._data):
            grown = np.empty(max(end, 2 * self._len, 16), np.int32)
            grown[: self._len] = self.view
            self._data = grown


@dataclass(slots=True, eq=False)
class Sequence:
    """One text on its way through the model.

    The scheduler owns `block_table`, `node` and `num_computed_tokens`; the engine appends to
    `tokens`, counts the rows that were scored, ends the healing by `settle`, which may move
    `output_start` and `num_computed_tokens` back by a token, and counts guesses that came true
    (`Draw.next`).
    Always 0 <= num_computed_tokens <= num_needed; K and V of the first `num_computed_tokens`
    tokens stand in the blocks of the table.
    """

    request_id: str
    namespace: str
    tokens: Ints
    output_start: int  # what comes before it was given; with `is_scored`, what follows as well
    is_scored: bool = False
    hint: Hint | None = None
    arrival: int = 0  # its place among all that arrived
    is_healing: bool = False  # whether the last token of the prompt stays is not known yet
    text_id: int = 0  # which of its request's texts is scored
    first_row: int = 0  # tokens before the first one that this sequence scores
    num_scored: int = 0  # rows
    block_table: Ints = field(default_factory=Ints)
    node: Node | None = None  # locked in the radix cache
    num_computed_tokens: int = 0
    num_cached_tokens: int = 0  # tokens that the first run through found in the cache
    num_published_tokens: int = 0  # tokens that were put in the cache
    num_skips: int = 0  # admissions of others that came later
    num_preemptions: int = 0

    @property
    def num_needed(self) -> int:
        """Tokens to compute before anything new can be known: nobody asks what follows a score."""
        return len(self.tokens) - self.is_scored

    @property
    def num_reusable(self) -> int:
        """Tokens that may come from the cache: it holds no logits, so wanted rows are computed."""
        if self.is_scored:
            return self.first_row - 1 + self.num_scored
        return self.num_settled - 1

    @property
    def num_settled(self) -> int:
        """Tokens that stay as they are, so that others may share them."""
        return len(self.tokens) - self.is_healing

    @property
    def num_given(self) -> int:
        """Tokens that came with the request: all but those of its output."""
        return len(self.tokens) if self.is_scored else self.output_start

    @property
    def is_past_prompt(self) -> bool:
        """True if all that came with the request is computed."""
        return self.num_computed_tokens >= self.num_given

    def note_cached(self, end: int) -> None:
        """Count the given tokens up to `end` that are not computed yet: the cache has them."""
        self.num_cached_tokens += max(0, min(end, self.num_given) - self.num_computed_tokens)

    def settle(self, num_taken_back: int) -> None:
        """End the healing: the prompt's last token stays (0), or is taken back (1)."""
        assert self.is_healing
        self.is_healing = False
        self.output_start -= num_taken_back
        self.tokens.cut(self.output_start)
        self.num_computed_tokens = min(self.num_computed_tokens, self.output_start)

    @property
    def is_decoding(self) -> bool:
        """True if only the last token of the output is missing."""
        is_output = len(self.tokens) > self.num_given
        return is_output and self.num_computed_tokens == len(self.tokens) - 1
