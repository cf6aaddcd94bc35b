"""A score as one request: which tokens of a text are scored, and what the answer means."""

from __future__ import annotations

from dataclasses import dataclass

from ..lang.ops import Select
from ..runtime.sequence import Int32, Output, ScoredText, ScoreRequest
from .backend import NodeMeta
from .branch import BranchText, TextCodec
from .outcome import usage_of
from .selection import common_prefix_len, prepare


@dataclass(frozen=True, slots=True, eq=False)
class Scoring:
    """A text in tokens, of which those from `start` on are scored."""

    token_ids: Int32
    start: int

    def request(self, id: str) -> ScoreRequest | None:
        """Give the request, None if there is no token to score."""
        if self.start >= len(self.token_ids):
            return None
        return ScoreRequest(id, (ScoredText(self.token_ids, self.start),))


def score_meta(output: Output | None) -> NodeMeta:
    """Give what the answer says, None if no token was asked for."""
    if output is None:
        return NodeMeta(finish_reason="stop")
    (logprobs,) = output.logprobs
    return NodeMeta(finish_reason="stop", usage=usage_of(output.usage), logprobs=logprobs)


def of_text(text: str, before: BranchText, codec: TextCodec) -> Scoring:
    """Score a text after a branch, in the tokens that a select gives it.

    Raises: RequestError (`empty_prompt`) as `prepare` does.
    """
    request = prepare(Select(None, (text,)), before, codec).request("")
    if request is None:
        return Scoring(codec.encode(""), 0)
    (scored,) = request.texts
    return Scoring(scored.token_ids, scored.score_from)


def of_output(before: BranchText, after: BranchText, codec: TextCodec) -> Scoring:
    """Score what a gen wrote, in its own tokens: `after` is its branch, `before` what it continued.

    Raises: RequestError (`empty_prompt`) as `settle_prompt` does.
    """
    prompt, settled = codec.settle_prompt(before), codec.settle(after)
    assert prompt.tokens is not None
    assert settled.tokens is not None
    given, token_ids = prompt.tokens.all_ids(), settled.tokens.all_ids()
    return Scoring(token_ids, max(1, common_prefix_len((given, token_ids))))
