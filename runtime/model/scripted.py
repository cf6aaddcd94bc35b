"""A byte-level stand-in for a model, driven by a Python function.

It keeps, in the place of K and V, each token and its position in the slot where the
engine says that it goes, and reads the context back through the block tables. So a
mistake in paging, sharing or copying gives a wrong context, and is seen.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..sequence import Batch, Int32
from .interface import Model, ModelLimits

Script: TypeAlias = Callable[[str], str | Mapping[str, float]]

BOS, IM_START, IM_END = 256, 257, 258
CONTROL_TOKENS = {"<|bos|>": BOS, "<|im_start|>": IM_START, "<|im_end|>": IM_END}
CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
PEAK = 0.9  # probability of what the script wants; the rest is spread over all bytes
FLOOR = 1e-12  # probability of what a mapping leaves out
NOTHING = -1  # what an unwritten slot holds

_CONTROL_TEXT = {token_id: text.encode() for text, token_id in CONTROL_TOKENS.items()}
_Logits: TypeAlias = npt.NDArray[np.float32]
_Weights: TypeAlias = npt.NDArray[np.float64]


class ByteTokenizer:
    """Ids 0 to 255 are the bytes; then come the control tokens. `<|im_end|>` ends an output."""

    def __init__(self, *, chat_template: str | None = CHATML, adds_bos: bool = False) -> None:
        self.chat_template = chat_template
        self.adds_bos = adds_bos
        self.vocab_size = 256 + len(CONTROL_TOKENS)
        self.bos_token_id: int | None = BOS
        self.eos_token_ids = frozenset((IM_END,))
        self.control_tokens: Mapping[str, int] = dict(CONTROL_TOKENS)
        self.token_bytes: Sequence[bytes | None] = tuple(
            bytes((i,)) if i < 256 else None for i in range(self.vocab_size)
        )

    def encode(self, text: str) -> list[int]:
        """Give the bytes of `text`; control tokens never come from here."""
        return list(text.encode("utf-8", errors="surrogatepass"))


class ScriptedRunner:
    """Says what `script` wants, as logits over bytes.

    `script` is called with the text before the output (control tokens as their text) and
    must be pure. A str is what the model wants to say, then it ends. A mapping gives the
    probabilities of the next character ("" is the end), and asks to be called again at
    each position with the text so far. Rows depend on the tokens of their sequence alone.
    """

    largest_ids: Sequence[int] = ()  # not known

    def __init__(self, script: Script, limits: ModelLimits) -> None:
        self.limits = limits
        num_slots = limits.num_blocks * limits.block_size
        self._script = script
        self._tokens: Int32 = np.full(num_slots, NOTHING, np.int32)
        self._positions: Int32 = np.full(num_slots, NOTHING, np.int32)

    def run(self, batch: Batch) -> _Logits:
        """Store the tokens, copy, read each context back; give the wanted rows."""
        self._tokens[batch.slot_mapping] = batch.token_ids
        self._positions[batch.slot_mapping] = batch.positions
        self._tokens[batch.copy_to] = self._tokens[batch.copy_from]
        self._positions[batch.copy_to] = self._positions[batch.copy_from]
        rows = [np.empty((0, self.limits.logits_width), np.float32)]
        for i in range(len(batch.seq_lens)):
            rows.extend(self._rows(batch, i))
        return np.concatenate(rows)

    def _rows(self, batch: Batch, i: int) -> list[_Logits]:
        """Give the wanted rows of the `i`-th sequence."""
        context = self._read(batch, i)
        first, end = int(batch.cu_seqlens[i]), int(batch.cu_seqlens[i + 1])
        wanted = [int(row) for row in batch.logit_rows if first <= row < end]
        output_start = _output_start(batch, i)
        rows = []
        for row in wanted:
            num_tokens = int(batch.positions[row]) + 1
            start = num_tokens if output_start is None else min(output_start, num_tokens)
            rows.append(self._logits(context[:num_tokens], start)[None])
        return rows

    def _read(self, batch: Batch, i: int) -> Int32:
        """Read a context through its block table, as attention does."""
        seq_len, block_size = int(batch.seq_lens[i]), self.limits.block_size
        places = np.arange(seq_len)
        slots = batch.block_tables[i][places // block_size] * block_size + places % block_size
        wrong = np.flatnonzero(self._positions[slots] != places)
        if len(wrong):
            raise RuntimeError(
                f"sequence {i} of the batch reads slot {slots[wrong[0]]} for position {wrong[0]},"
                f" which holds position {self._positions[slots[wrong[0]]]}"
            )
        context: Int32 = self._tokens[slots]
        return context

    def _logits(self, context: Int32, output_start: int) -> _Logits:
        answer = self._script(_text(context[:output_start]))
        if isinstance(answer, str):
            wanted = [*answer.encode(), IM_END]
            spoken = len(context) - output_start
            weights = _spread(context) * (1 - PEAK)
            weights[wanted[min(spoken, len(wanted) - 1)]] += PEAK
        else:
            weights = self._mapped(context)
        logits = np.full(self.limits.logits_width, -60.0, np.float32)
        logits[:256] = np.log(weights[:256])
        logits[IM_END] = np.log(weights[IM_END])
        # Padded rows of a real model hold anything; here they always win if nobody masks them.
        logits[len(weights) :] = 10.0
        return logits

    def _mapped(self, context: Int32) -> _Weights:
        """Give weights of the next byte from probabilities of the next character."""
        pending = _incomplete(context)
        answer = self._script(_text(context[: len(context) - len(pending)]))
        choices = {answer[:1]: 1.0} if isinstance(answer, str) else answer
        weights = np.full(256 + len(CONTROL_TOKENS), FLOOR)
        for character, probability in choices.items():
            data = character.encode()
            if not data and not pending:
                weights[IM_END] += probability
            elif data.startswith(pending) and len(data) > len(pending):
                weights[data[len(pending)]] += probability
        return weights


def scripted_model(
    script: Script,
    *,
    block_size: int = 16,
    num_blocks: int = 4096,
    max_context: int = 8192,
    template: str | None = CHATML,
    adds_bos: bool = False,
    logits_width: int | None = None,
) -> Model:
    """Give a model that says what `script` wants. `template` None: a model without chat."""
    tokenizer = ByteTokenizer(chat_template=template, adds_bos=adds_bos)
    limits = ModelLimits(
        max_context=max_context,
        num_blocks=num_blocks,
        block_size=block_size,
        logits_width=tokenizer.vocab_size if logits_width is None else logits_width,
    )
    runner = ScriptedRunner(script, limits)
    return Model("scripted", "scripted-1", tokenizer, runner, sees_output_start=True)


def _output_start(batch: Batch, i: int) -> int | None:
    """Where the output of the `i`-th sequence starts, None if the batch does not say."""
    if i >= len(batch.sequences):
        return None
    start = getattr(batch.sequences[i], "output_start", None)
    return start if isinstance(start, int) else None


def _text(token_ids: Int32) -> str:
    """Decode, with control tokens as their text."""
    if not len(token_ids) or int(token_ids.max()) < 256:
        return token_ids.astype(np.uint8).tobytes().decode("utf-8", errors="replace")
    data = b"".join(_CONTROL_TEXT.get(i) or bytes((i,)) for i in token_ids.tolist())
    return data.decode("utf-8", errors="replace")


def _incomplete(context: Int32) -> bytes:
    """Give the bytes at the end that begin a character but do not end it."""
    for length in range(1, min(3, len(context)) + 1):
        token_id = int(context[-length])
        if token_id > 255 or token_id < 0x80:
            return b""
        if token_id >= 0xC0:
            needed = 2 if token_id < 0xE0 else 3 if token_id < 0xF0 else 4
            tail = context[len(context) - length :]
            return tail.astype(np.uint8).tobytes() if length < needed else b""
    return b""


def _spread(context: Int32) -> _Weights:
    """Give each byte, and the end, a weight that depends on the whole context; the sum is 1."""
    mixed = (np.arange(256 + len(CONTROL_TOKENS)) + 1) * 2654435761 ^ zlib.crc32(context.tobytes())
    weights = 1.0 + (mixed * 40503 >> 7) % 1024
    weights[[BOS, IM_START]] = 0.0
    total: _Weights = weights / weights.sum()
    return total
