"""What the engine refuses at once, and the sequences of what it takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .config import EngineConfig
from .errors import RequestError
from .generation import Generation, Room
from .grammar.spec import CompiledGrammar, GrammarSpec
from .healing import Border, Speller
from .model.interface import Model
from .scoring import Span
from .sequence import Int32, Ints, Request, ScoredText, ScoreRequest, Sequence


class Gate:
    """The limits of one model and one configuration."""

    def __init__(self, model: Model, config: EngineConfig) -> None:
        limits = model.runner.limits
        self.max_context = min(limits.max_context, config.max_context or limits.max_context)
        self.pool_tokens = limits.num_blocks * limits.block_size
        self._vocab_size = min(model.tokenizer.vocab_size, limits.logits_width)
        self._logits_width = limits.logits_width
        self._is_jumping = config.jump_forward
        self._max_waiting = config.max_waiting
        self._tokenizer = model.tokenizer
        self._digest = model.digest
        self._speller = Speller(model.tokenizer, limits.logits_width)

    def check(self, request: Request | ScoreRequest) -> None:
        """Raise RequestError if a request can never be served."""
        if isinstance(request, Request):
            self._check(request.prompt, "prompt", num_new=1)
            return
        if not request.texts:
            raise RequestError("empty_prompt", f"request {request.id}: no text to score")
        for text in request.texts:
            self._check_scored(text)

    def check_queue(self, num_queued: int) -> None:
        """Raise RequestError if no more than the `num_queued` requests may wait."""
        if num_queued >= self._max_waiting:
            raise RequestError(
                "queue_full", f"{num_queued} requests wait, the queue is full; try again"
            )

    def namespace(self, request: Request | ScoreRequest) -> str:
        """Give the first part of the request's keys in the cache."""
        return f"{self._digest}/{request.namespace}"

    def sequence(self, request: Request, border: Border | None) -> Sequence:
        """Give the sequence of a request that `check` let pass."""
        tokens, start = Ints(request.prompt), len(request.prompt)
        is_healing = border is not None
        namespace, hint = self.namespace(request), request.hint
        return Sequence(request.id, namespace, tokens, start, hint=hint, is_healing=is_healing)

    def scored(self, request: ScoreRequest, spans: Iterable[Span]) -> tuple[Sequence, ...]:
        """Give the sequences that compute some rows of a request that `check` let pass."""
        namespace = self.namespace(request)
        return tuple(
            Sequence(
                request.id,
                namespace,
                Ints(request.texts[span.text].token_ids[: span.last + 1]),
                request.texts[span.text].score_from,
                is_scored=True,
                hint=request.hint,
                text_id=span.text,
                first_row=span.first,
            )
            for span in spans
        )

    def border(self, request: Request | ScoreRequest) -> Border | None:
        """Give the end of the prompt if the output may spell it anew, and there is a use in it."""
        if isinstance(request, ScoreRequest) or not request.sampling.heal:
            return None
        return self._speller.border(request.prompt)

    def constraint(self, request: Request, grammar: GrammarSpec) -> GrammarSpec:
        """Give the request's grammar, before it what the output spells anew."""
        border = self.border(request)
        return grammar if border is None else replace(grammar, prefix=border.data)

    def generation(
        self, request: Request, grammar: CompiledGrammar | None, border: Border | None
    ) -> Generation:
        """Give the output of a request that `check` let pass, before its first token.

        Raises: RequestError if the grammar was not compiled from `constraint`.
        """
        if grammar is not None:
            _check_prefix(grammar, border)
        return Generation(request, self._tokenizer, grammar, self._room(request), border)

    def pool_exceeded(self) -> RequestError:
        """Give the error of a request that grew until it filled the pool."""
        size = f"the KV pool of {self.pool_tokens} tokens"
        return RequestError(
            "pool_exceeded", f"the request fills {size} alone; raise kv_cache_tokens"
        )

    def _room(self, request: Request) -> Room:
        """Say how far the output of a request may go."""
        longest = self.max_context - len(request.prompt)
        wanted = request.sampling.max_tokens
        return Room(
            max_output=longest if wanted is None else min(longest, wanted),
            max_context=longest,
            max_computed=self.pool_tokens - len(request.prompt),
            logits_width=self._logits_width,
            is_jumping=self._is_jumping,
        )

    def _check_scored(self, text: ScoredText) -> None:
        self._check(text.token_ids, "text", num_new=0)
        if not 1 <= text.score_from < len(text.token_ids):
            raise RequestError(
                "invalid_request",
                f"score_from={text.score_from}: must be at least 1 and less than the "
                f"{len(text.token_ids)} tokens of the text",
            )

    def _check(self, tokens: Int32, what: str, num_new: int) -> None:
        if not len(tokens):
            raise RequestError("empty_prompt", f"the {what} has no tokens; pass at least one")
        needed = len(tokens) + num_new
        extra = " plus one to generate" if num_new else ""
        if needed > self.max_context:
            raise RequestError(
                "context_exceeded",
                f"the {what} has {len(tokens)} tokens{extra}, the context holds "
                f"{self.max_context}; shorten the {what}",
            )
        if needed > self.pool_tokens:
            raise RequestError(
                "pool_exceeded",
                f"the {what} has {len(tokens)} tokens{extra}, the KV pool holds "
                f"{self.pool_tokens}; shorten the {what} or raise kv_cache_tokens",
            )
        if int(tokens.min()) < 0 or int(tokens.max()) >= self._vocab_size:
            raise RequestError(
                "invalid_request",
                f"the {what} has a token id outside of 0 to {self._vocab_size - 1}",
            )


def _check_prefix(grammar: CompiledGrammar, border: Border | None) -> None:
    expected = b"" if border is None else border.data
    if grammar.prefix != expected:
        message = f"the grammar begins with {grammar.prefix!r}, the output with {expected!r}"
        raise RequestError("internal", f"{message}; compile gate.constraint(request, ...)")
