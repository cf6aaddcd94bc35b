"""Select as one score request: where choices begin in tokens, and what the answer means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..lang.ops import Select
from ..runtime.sequence import Int32, Output, ScoredText, ScoreRequest
from .branch import BranchText, TextCodec, TokenLink, as_ids
from .choices import Decision, decide


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """A select whose choices are tokens.

    Pending text and each choice are tokenised together. The border is the longest run of
    tokens that the pending text and all of these share: what follows it is the choice's
    own, even where the tokenizer merged the end of the text into it.
    """

    op: Select
    branch: BranchText
    head: TokenLink | None  # the tokens before the pending text
    joint: tuple[Int32, ...]  # pending text and choice, by choice
    border: int  # tokens of each in `joint` that are not the choice's own
    start_token: int | None  # what a choice without text before it starts from

    @property
    def own(self) -> list[list[int]]:
        """The tokens that are scored, by choice; none for an empty choice."""
        return [token_ids[self.border :].tolist() for token_ids in self.joint]

    def request(self, id: str) -> ScoreRequest | None:
        """Give the request that scores all choices, None if no choice has a token."""
        head = self.head.all_ids() if self.head is not None else as_ids(())
        score_from = len(head) + self.border
        texts = [
            ScoredText(np.concatenate([head, token_ids]), score_from)
            for token_ids in self.joint
            if len(token_ids) > self.border
        ]
        if self.start_token is not None:
            alone = [as_ids([self.start_token, *ids]) for ids in self.own if ids]
            texts += [ScoredText(token_ids, 1) for token_ids in alone]
        return ScoreRequest(id, tuple(texts)) if texts else None

    def decide(self, output: Output | None) -> Decision:
        """Decide by the answer to the request, None if none was needed."""
        rows = iter(output.logprobs if output is not None else ())
        own = self.own
        logprobs = [next(rows) if ids else () for ids in own]
        without = [next(rows) if ids else () for ids in own] if self.start_token is not None else ()
        return decide(self.op.method, own, logprobs, without)

    def chosen(self, codec: TextCodec, winner: int) -> BranchText:
        """Give the branch with the winner's tokens: nothing is pending after them."""
        tokens = codec.grow(self.head, self.joint[winner])
        return replace(self.branch, tokens=tokens, pending=None)


def prepare(op: Select, branch: BranchText, codec: TextCodec) -> Selection:
    """Tokenise a select's choices after the branch.

    Raises: RequestError (`empty_prompt`) if nothing stands before the choices, and the
    model has no token to start with.
    """
    text = branch.pending_text()
    base = codec.encode(text)
    joint = tuple(codec.encode(text + choice) for choice in op.choices)
    border = common_prefix_len([base, *joint])
    head = branch.tokens if branch.tokens is not None else codec.grow(None, as_ids(()))
    if head is None and border == 0:
        head = codec.grow(None, as_ids([codec.start_token()]))
    needs_start = op.method == "unconditional_likelihood_normalized"
    start_token = codec.start_token() if needs_start else None
    return Selection(op, branch, head, joint, border, start_token)


def common_prefix_len(rows: Sequence[Int32]) -> int:
    """Count the tokens that all of these begin with."""
    length = min(map(len, rows))
    differs = np.zeros(length, dtype=np.bool_)
    for row in rows[1:]:
        differs |= row[:length] != rows[0][:length]
    return int(differs.argmax()) if differs.any() else length
