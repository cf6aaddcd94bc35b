"""How one output grows: grammar, end tokens, text, stop strings and limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .errors import RequestError
from .grammar.spec import CompiledGrammar
from .model.interface import Tokenizer
from .sample import SampleRow
from .sequence import FinishReason, Request
from .text import TextStream


@dataclass(frozen=True, slots=True)
class Progress:
    """What one token did: the text that is now safe to show, and whether the output is over."""

    text: str
    finish_reason: FinishReason | None


class Generation:
    """The state of one output. `max_output` is its last length, for whatever reason."""

    def __init__(
        self,
        request: Request,
        tokenizer: Tokenizer,
        grammar: CompiledGrammar | None,
        max_output: int,
        logits_width: int,
    ) -> None:
        self.num_tokens = 0
        self.stream = TextStream(tokenizer.token_bytes, request.sampling.stop)
        self._tokens: list[int] = []
        self._request = request
        self._eos_ids = tokenizer.eos_token_ids
        self._matcher = None if grammar is None else grammar.matcher()
        self._max_output = max_output
        self._mask_words = -(-logits_width // 32)

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Tokens that lie wholly before a stop string."""
        return tuple(self._tokens[: self.stream.num_kept])

    def row(self) -> SampleRow:
        """Say how the next token is to be drawn."""
        mask = None
        if self._matcher is not None:
            mask = np.zeros(self._mask_words, np.int32)
            self._matcher.fill_bitmask(mask)
        return SampleRow(
            params=self._request.sampling,
            seed=self._request.seed,
            position=self.num_tokens,
            mask=mask,
            forbid_eos=self._forbids_eos,
        )

    def accept(self, token_id: int) -> Progress:
        """Take the token that was drawn. Raises: RequestError if the grammar refuses it."""
        self.num_tokens += 1
        if token_id in self._eos_ids and not self._request.sampling.ignore_eos:
            return Progress(self.stream.finish(), "stop")
        if self._matcher is not None and not self._matcher.accept(token_id):
            raise RequestError("internal", f"the grammar masked token {token_id} and it was drawn")
        self._tokens.append(token_id)
        text = self.stream.push(token_id)
        reason = self._finish_reason()
        if reason is not None:
            text += self.stream.finish()
        return Progress(text, reason)

    def _finish_reason(self) -> FinishReason | None:
        if self.stream.is_stopped:
            return "stop"
        if self._matcher is not None and self._matcher.is_finished:
            return "stop"
        return "length" if self.num_tokens >= self._max_output else None

    @property
    def _forbids_eos(self) -> bool:
        sampling = self._request.sampling
        return sampling.ignore_eos or self.num_tokens < sampling.min_tokens
