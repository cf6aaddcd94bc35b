"""What a finished gen or select leaves behind: its branch, its value, what is known of it."""

from __future__ import annotations

import dataclasses

from ..runtime.sequence import Output, Usage
from .backend import NodeMeta, NodeUsage
from .branch import BranchText, TextCodec, as_ids
from .selection import Selection


def gen_outcome(
    prompt: BranchText, text: str, output: Output, codec: TextCodec
) -> tuple[BranchText, str, NodeMeta]:
    """Append what was generated, token for token; text cut out of a token waits as text."""
    tokens = prompt.tokens
    if output.is_healed:
        assert tokens is not None
        tokens = tokens.without_last()
    tokens = codec.grow(tokens, as_ids(output.token_ids))
    branch = dataclasses.replace(prompt, tokens=tokens).add(output.tail, is_given=False)
    meta = NodeMeta(output.finish_reason, output.stop_reason, _usage(output.usage))
    return branch, text, meta


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
