"""An engine that computes nothing: it counts what its requests would cost."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...runtime.errors import RequestCode
from ...runtime.healing import Speller
from ...runtime.scoring import ScoreSheet, Span
from ...runtime.sequence import Int32, Output, Request, ScoreRequest, Usage
from ..model_text import ModelText
from .filler import Filler
from .tree import PrefixTree

if TYPE_CHECKING:
    from ...runtime.model.interface import Model

Sink = Callable[[Output], None]
UNBOUNDED = 256  # tokens that a gen without a limit is taken to write


@dataclass(frozen=True, slots=True)
class Counted:
    """What one request costs; `is_bounded`: it cannot write more."""

    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    is_bounded: bool


@dataclass(slots=True)
class _Asked:
    request: Request | ScoreRequest
    sink: Sink
    output: Output | None = None
    tokens: Int32 | None = None  # prompt and output, as far as a cache would hold them


class CountingEngine:
    """Answers requests in rounds: all that wait run beside each other, and end together.

    Outputs are as long as they may be, or `output_tokens` if that is less. What was asked at
    temperature 0 after the same prompt is answered alike, all else differently.
    """

    def __init__(self, text: ModelText, output_tokens: int | None) -> None:
        self.counts: dict[str, Counted] = {}  # by the request's id
        self.peak_tokens = 0  # of the prompts and outputs of one round, each prefix once
        self.tree = PrefixTree()
        self._text = text
        self._output_tokens = output_tokens
        self._filler = Filler(text.tokenizer)
        self._speller = Speller(text.tokenizer, text.tokenizer.vocab_size)
        self._asked: deque[_Asked] = deque()
        self._numbers: dict[object, int] = {}
        # Tokens whose log-probability is known, by what stands before them; and those of a round.
        self._scored: dict[bytes, set[int]] = {}
        self._asked_scores: dict[bytes, set[int]] = {}

    @property
    def model(self) -> Model:
        """There is none: whoever asks is told by the text side."""
        raise AssertionError("a plan has no model")

    def submit(self, request: Request | ScoreRequest, sink: Sink) -> None:
        """Take a request for the next round."""
        self._asked.append(_Asked(request, sink))

    def abort(self, request_id: str) -> None:
        """Forget a request."""
        self._asked = deque(a for a in self._asked if a.request.id != request_id)

    def run_round(self) -> bool:
        """Answer all that wait; False if nothing does."""
        asked, self._asked = list(self._asked), deque()
        self.tree.start_round()
        for each in asked:
            if isinstance(each.request, Request):
                self._start(each, each.request)
            else:
                self._score(each, each.request)
        for each in asked:
            if each.tokens is not None:
                self.tree.insert(each.tokens.tolist())
        for place, tokens in self._asked_scores.items():
            self._scored.setdefault(place, set()).update(tokens)
        self._asked_scores = {}
        self.peak_tokens = max(self.peak_tokens, self.tree.num_touched)
        for each in asked:
            assert each.output is not None
            each.sink(each.output)
        return bool(asked)

    def _start(self, asked: _Asked, request: Request) -> None:
        prompt = request.prompt
        if self._refuse(asked, prompt, num_new=1):
            return
        is_healing = request.sampling.heal and self._speller.border(prompt) is not None
        num_settled = len(prompt) - is_healing
        cached = self.tree.match(prompt[: num_settled - 1].tolist())
        self.tree.insert(prompt[:num_settled].tolist())
        ids, text, is_bounded = self._written(request)
        self._count(request.id, Counted(len(prompt), cached, len(ids), is_bounded))
        output: Int32 = np.array(ids, np.int32)
        asked.tokens = np.concatenate([prompt, output[:-1]])
        usage = Usage(len(prompt), cached, len(ids))
        asked.output = Output(request.id, text, "length", token_ids=ids, usage=usage)

    def _written(self, request: Request) -> tuple[tuple[int, ...], str, bool]:
        """Give the tokens and the text of an output, and whether it cannot be longer."""
        room = self._text.max_context - len(request.prompt)
        limits = (self._output_tokens, request.sampling.max_tokens)
        least = min([room, *(limit for limit in limits if limit is not None)])
        grammar = request.grammar
        if grammar is not None and grammar.kind == "choices":
            spelled = {choice: self._text.tokenizer.encode(choice) for choice in grammar.source}
            longest = max(spelled, key=lambda choice: len(spelled[choice]))
            return tuple(spelled[longest][:least]), longest, True
        is_bounded = request.sampling.max_tokens is not None
        num_tokens = least if is_bounded else min(least, UNBOUNDED)
        return (*self._filler.output(self._number(request), num_tokens), is_bounded)

    def _number(self, request: Request) -> int:
        is_greedy = request.sampling.temperature == 0
        asked = (request.prompt.tobytes(), request.sampling, request.grammar)
        return self._numbers.setdefault(asked if is_greedy else request.id, len(self._numbers))

    def _score(self, asked: _Asked, request: ScoreRequest) -> None:
        """Score texts so that the longest one wins."""
        for text in request.texts:
            if self._refuse(asked, text.token_ids, num_new=0):
                return
        prompt_tokens = sum(len(text.token_ids) for text in request.texts)
        computed = sum(self._compute(request, span) for span in self._sheet(request).spans())
        cached = prompt_tokens - computed
        self._count(request.id, Counted(prompt_tokens, cached, 0, True))
        longest = max(len(text.token_ids) - text.score_from for text in request.texts)
        logprobs = tuple(
            tuple(
                0.0 if len(text.token_ids) - text.score_from == longest else -1.0
                for _ in range(text.score_from, len(text.token_ids))
            )
            for text in request.texts
        )
        usage = Usage(prompt_tokens, cached)
        asked.output = Output(request.id, "", "stop", logprobs=logprobs, usage=usage)

    def _sheet(self, request: ScoreRequest) -> ScoreSheet:
        """Give the rows that a request asks for, with those that a request before has asked."""
        sheet = ScoreSheet(request.texts)
        for text, lengths in sheet.wanted():
            ids = request.texts[text].token_ids
            for length in lengths:
                place = ids[:length].tobytes()
                wanted = sheet.unknown(text, length)
                known = self._scored.get(place, set())
                sheet.put(text, length, {token: 0.0 for token in wanted if token in known})
                self._asked_scores.setdefault(place, set()).update(wanted)
        return sheet

    def _compute(self, request: ScoreRequest, span: Span) -> int:
        """Count the tokens that some rows of a request take, beside those that are cached."""
        ids = request.texts[span.text].token_ids[: span.last].tolist()
        cached = self.tree.match(ids[: span.first - 1])
        self.tree.insert(ids)
        return len(ids) - cached

    def _refuse(self, asked: _Asked, token_ids: Sequence[int] | Int32, num_new: int) -> bool:
        """Fail a request whose prompt does not fit, as an engine does."""
        if len(token_ids) + num_new <= self._text.max_context:
            return False
        code: RequestCode = "context_exceeded"
        message = (
            f"the prompt has {len(token_ids)} tokens, the context holds {self._text.max_context}"
        )
        asked.output = Output(asked.request.id, "", "error", error_code=code, error=message)
        return True

    def _count(self, request_id: str, counted: Counted) -> None:
        self.counts[request_id] = counted
