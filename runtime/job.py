"""A request while the engine has it: its sequences, its state, its clock."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import RequestError
from .generation import Generation
from .scoring import ScoreSheet
from .sequence import FinishReason, Output, Request, ScoreRequest, Sequence, Usage
from .speculation.guesser import Guesser


@dataclass(slots=True, eq=False)
class Job:
    """One live request. The engine owns it; times are of its clock, in seconds."""

    request: Request | ScoreRequest
    sequences: tuple[Sequence, ...]
    work: Generation | ScoreSheet
    num_prompt_tokens: int
    arrived_s: float
    started_s: float | None = None
    answered_s: float | None = None  # when the first token, or the last score, was known
    is_aborted: bool = False
    num_open: int = 0  # sequences that are not finished
    guesser: Guesser | None = None  # once there was a use for one
    num_drafted_tokens: int = 0
    num_accepted_tokens: int = 0

    @classmethod
    def start(
        cls,
        request: Request | ScoreRequest,
        sequences: tuple[Sequence, ...],
        work: Generation | ScoreSheet,
        now_s: float,
    ) -> Job:
        """Give the job of a request that has just arrived."""
        num_prompt_tokens = (
            len(request.prompt)
            if isinstance(request, Request)
            else sum(len(text.token_ids) for text in request.texts)
        )
        return cls(request, sequences, work, num_prompt_tokens, now_s, num_open=len(sequences))

    @property
    def generation(self) -> Generation | None:
        """Give the state of its output, None for a ScoreRequest."""
        return self.work if isinstance(self.work, Generation) else None

    @property
    def num_cached_tokens(self) -> int:
        """Count the tokens of the prompt, or of all scored texts, that were not computed."""
        if isinstance(self.work, Generation):
            return sum(sequence.num_cached_tokens for sequence in self.sequences)
        computed = sum(s.num_needed - s.num_cached_tokens for s in self.sequences)
        return self.num_prompt_tokens - computed

    def usage(self, now_s: float) -> Usage:
        """Count tokens and seconds so far."""
        started = now_s if self.started_s is None else self.started_s
        answered = now_s if self.answered_s is None else self.answered_s
        return Usage(
            prompt_tokens=self.num_prompt_tokens,
            cached_tokens=self.num_cached_tokens,
            output_tokens=0 if self.generation is None else self.generation.num_tokens,
            forced_tokens=0 if self.generation is None else self.generation.num_forced,
            drafted_tokens=self.num_drafted_tokens,
            accepted_tokens=self.num_accepted_tokens,
            queue_s=started - self.arrived_s,
            prefill_s=answered - started,
            decode_s=now_s - answered,
        )

    def failure(self, error: RequestError, now_s: float) -> Output:
        """Give the terminal output of a request that failed, or was cancelled."""
        return Output(
            request_id=self.request.id,
            finish_reason="cancelled" if error.code == "cancelled" else "error",
            token_ids=() if self.generation is None else self.generation.token_ids,
            is_healed=self.generation is not None and self.generation.is_healed,
            usage=self.usage(now_s),
            error_code=error.code,
            error=str(error),
        )

    def answer(self, text: str, reason: FinishReason, now_s: float) -> Output:
        """Give the terminal output of a request that ended well."""
        generation = self.work
        if isinstance(generation, ScoreSheet):
            return Output(
                request_id=self.request.id,
                finish_reason="stop",
                logprobs=generation.answer(),
                usage=self.usage(now_s),
            )
        return Output(
            request_id=self.request.id,
            text=text,
            finish_reason=reason,
            stop_reason=generation.stream.stop_reason,
            token_ids=generation.token_ids,
            tail=generation.stream.tail,
            is_healed=generation.is_healed,
            usage=self.usage(now_s),
        )
