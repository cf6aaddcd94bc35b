"""A model of whims whose tokens are more than bytes: what it says depends on every token."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from plait.runtime.config import EngineConfig
from plait.runtime.engine import Engine
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.spec import GrammarMatcher
from plait.runtime.grammar.vocabulary import Vocabulary
from plait.runtime.model.interface import Model, ModelLimits
from plait.runtime.model.scripted import CONTROL_TOKENS, IM_END, ScriptedRunner
from plait.runtime.sequence import Int32

_WORDS = (
    'na me name {" ": :" ":" ," ", "," "} 12 123 ab abc bc bca aa aaaa tr tru true ue fal se false'
    ' }, id "id "name no yes ye -- -a ha hat ":[ [" é ж [[ ]] "]'
)
MERGES = [*_WORDS.split(), " a", " ab", ", ", ' "', ': "', "\n ", "  "]  # the first come first


class WordTokenizer:
    """Ids 0 to 255 are the bytes, then come the control tokens, then MERGES."""

    def __init__(self) -> None:
        self.chat_template = None
        self.adds_bos = False
        self.bos_token_id = None
        self.eos_token_ids = frozenset((IM_END,))
        self.control_tokens: Mapping[str, int] = dict(CONTROL_TOKENS)
        control: list[bytes | None] = [None] * len(CONTROL_TOKENS)
        words = dict.fromkeys(word.encode() for word in MERGES)
        self.token_bytes: Sequence[bytes | None] = (
            *(bytes((byte,)) for byte in range(256)),
            *control,
            *words,
        )
        self.vocab_size = len(self.token_bytes)
        self._ids = {data: i for i, data in enumerate(self.token_bytes) if data is not None}

    def encode(self, text: str) -> list[int]:
        """Merge the pair that comes first in the list, the leftmost first, until none is left."""
        parts = [bytes((byte,)) for byte in text.encode()]
        while True:
            ranks = [
                (rank, at)
                for at in range(len(parts) - 1)
                if (rank := self._ids.get(parts[at] + parts[at + 1])) is not None
            ]
            if not ranks:
                return [self._ids[part] for part in parts]
            _, at = min(ranks)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Give the text of tokens."""
        return b"".join(self.token_bytes[i] or b"" for i in token_ids).decode()


class WhimRunner(ScriptedRunner):
    """Gives each token a weight that depends on all tokens before it, and on nothing else."""

    def _logits(self, context: Int32, output_start: int) -> npt.NDArray[np.float32]:
        rng = np.random.default_rng(zlib.crc32(context.tobytes()))
        return rng.normal(0.0, 2.0, self.limits.logits_width).astype(np.float32)


class HabitRunner(ScriptedRunner):
    """Gives each token a weight that depends on the last one alone: it repeats itself."""

    def _logits(self, context: Int32, output_start: int) -> npt.NDArray[np.float32]:
        rng = np.random.default_rng(zlib.crc32(context[-1:].tobytes()))
        return rng.normal(0.0, 3.0, self.limits.logits_width).astype(np.float32)


TOKENIZER = WordTokenizer()
WIDTH = TOKENIZER.vocab_size + 5
COMPILER = GrammarCompiler(
    Vocabulary(TOKENIZER.token_bytes, TOKENIZER.eos_token_ids, WIDTH), 10.0, 200_000
)


def allowed(matcher: GrammarMatcher) -> list[int]:
    """Give the ids of the tokens that may come next."""
    row = np.zeros(-(-WIDTH // 32), np.int32)
    matcher.fill_bitmask(row)
    return [int(i) for i in np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))]


def whims(*, block_size: int = 16, num_blocks: int = 512, **options: object) -> Engine:
    """Give an engine on the model; `options` are the engine's settings."""
    return _engine(WhimRunner, block_size, num_blocks, options)


def habits(
    *,
    block_size: int = 16,
    num_blocks: int = 512,
    max_draft_tokens: int | None = 8,
    **options: object,
) -> Engine:
    """Give an engine that drafts, on a model that repeats itself."""
    options["max_draft_tokens"] = max_draft_tokens
    return _engine(HabitRunner, block_size, num_blocks, options)


def _engine(
    runner: type[ScriptedRunner], block_size: int, num_blocks: int, options: dict[str, object]
) -> Engine:
    limits = ModelLimits(
        max_context=2048, num_blocks=num_blocks, block_size=block_size, logits_width=WIDTH
    )
    model = Model("whims", "whims-1", TOKENIZER, runner(lambda _: "", limits))
    return Engine(model, EngineConfig(**options))  # type: ignore[arg-type]
