"""What a finished gen or select leaves behind: its branch, its value, what is known of it."""

from __future__ import annotations

import dataclasses

from ..lang.ops import Gen, Select
from ..runtime.errors import RequestError
from ..runtime.sequence import Output, Usage
from .backend import Done, GenTokens, NodeMeta, NodeUsage
from .branch import BranchText, TextCodec, as_ids
from .selection import Selection, prepare


def gen_outcome(
    prompt: BranchText, text: str, output: Output, codec: TextCodec
) -> tuple[BranchText, str, NodeMeta, GenTokens]:
    """Append what was generated, token for token; text cut out of a token waits as text."""
    tokens = GenTokens(tuple(output.token_ids), output.tail, output.is_healed)
    meta = NodeMeta(output.finish_reason, output.stop_reason, _usage(output.usage))
    return gen_branch(prompt, tokens, codec), text, meta, tokens


def gen_branch(prompt: BranchText, written: GenTokens, codec: TextCodec) -> BranchText:
    """Give the branch of a gen that wrote these tokens after `prompt`."""
    tokens = prompt.tokens
    if written.is_healed:
        assert tokens is not None
        tokens = tokens.without_last()
    tokens = codec.grow(tokens, as_ids(written.token_ids))
    return dataclasses.replace(prompt, tokens=tokens).add(written.tail, is_given=False)


def known_branch(op: Gen | Select, done: Done, before: BranchText, codec: TextCodec) -> BranchText:
    """Give the branch after a gen or select that an earlier run has finished.

    Raises: RequestError if the outcome is not one that the operation can have.
    """
    if isinstance(op, Gen):
        if done.tokens is None:
            raise RequestError("invalid_request", "its known outcome has no tokens")
        codec.check_ids(done.tokens.token_ids)
        return gen_branch(codec.settle_prompt(before), done.tokens, codec)
    if done.text not in op.choices:
        raise RequestError("invalid_request", f"its known outcome {done.text!r} is no choice")
    return prepare(op, before, codec).chosen(codec, op.choices.index(done.text))


def select_outcome(
    selection: Selection, output: Output | None, codec: TextCodec
) -> tuple[BranchText, str, NodeMeta]:
    """Append the winner's tokens; its value is the choice exactly as it was given."""
    decision = selection.decide(output)
    choices = selection.op.choices
    meta = NodeMeta(
        finish_reason="stop",
        usage=_usage(output.usage) if output is not None else NodeUsage(),
        probabilities=dict(zip(choices, decision.probabilities, strict=True)),
        scores=dict(zip(choices, decision.scores, strict=True)),
    )
    return selection.chosen(codec, decision.winner), choices[decision.winner], meta


def _usage(usage: Usage) -> NodeUsage:
    return NodeUsage(
        **{field.name: getattr(usage, field.name) for field in dataclasses.fields(NodeUsage)}
    )
