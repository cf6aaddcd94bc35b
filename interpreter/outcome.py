"""What a finished gen or select leaves behind: its branch, its value, what is known of it."""

from __future__ import annotations

import dataclasses

from ..lang.ops import Gen, Op, Sampling, Score, Select
from ..runtime.errors import RequestCode, RequestError
from ..runtime.sample import share_of
from ..runtime.sequence import Output, Usage
from .backend import ABSTAINED, Done, GenTokens, NodeMeta, NodeUsage
from .branch import BranchText, TextCodec, as_ids
from .choices import choose
from .selection import Selection, prepare


def failure_of(output: Output) -> tuple[RequestCode, str] | None:
    """Give the code and the message of a request that failed or was cancelled, else None."""
    if output.error_code is None and output.finish_reason not in ("error", "cancelled"):
        return None
    is_cancelled = output.finish_reason == "cancelled"
    code = output.error_code or ("cancelled" if is_cancelled else "internal")
    return code, output.error or f"the engine stopped it: {code}"


def gen_outcome(
    prompt: BranchText, text: str, output: Output, codec: TextCodec
) -> tuple[BranchText, str, NodeMeta, GenTokens]:
    """Append what was generated, token for token; text cut out of a token waits as text."""
    tokens = GenTokens(tuple(output.token_ids), output.tail, output.is_healed)
    meta = NodeMeta(output.finish_reason, output.stop_reason, usage_of(output.usage))
    return gen_branch(prompt, tokens, codec), text, meta, tokens


def gen_branch(prompt: BranchText, written: GenTokens, codec: TextCodec) -> BranchText:
    """Give the branch of a gen that wrote these tokens after `prompt`."""
    tokens = prompt.tokens
    if written.is_healed:
        assert tokens is not None
        tokens = tokens.without_last()
    tokens = codec.grow(tokens, as_ids(written.token_ids))
    return dataclasses.replace(prompt, tokens=tokens).add(written.tail, is_given=False)


def known_branch(
    op: Gen | Select | Score, done: Done, before: BranchText, codec: TextCodec
) -> BranchText:
    """Give the branch after a gen, select or score that an earlier run has finished.

    Raises: RequestError if the outcome is not one that the operation can have.
    """
    match op:
        case Gen():
            if done.tokens is None:
                raise RequestError("invalid_request", "its known outcome has no tokens")
            codec.check_ids(done.tokens.token_ids)
            return gen_branch(codec.settle_prompt(before), done.tokens, codec)
        case Select(choices=choices) if done.text in choices:
            return prepare(op, before, codec).chosen(codec, choices.index(done.text))
        case Select() if done.meta.finish_reason != ABSTAINED:
            message = f"its known outcome {done.text!r} is no choice"
            raise RequestError("invalid_request", message)
        case _:
            return before


def gen_value(op: Op, defaults: Sampling, text: str, output: Output) -> str | None:
    """Give a gen's value if it is another text than what the branch has: no stop string."""
    assert isinstance(op, Gen)
    own = op.sampling.keep_stop
    is_kept = defaults.keep_stop if own is None else own
    if not is_kept or output.stop_reason is None:
        return None
    return text.removesuffix(output.stop_reason)


def select_outcome(
    selection: Selection, output: Output | None, codec: TextCodec, seed: int
) -> tuple[BranchText, str, NodeMeta]:
    """Append the tokens of the choice that is taken, which is given exactly as it was asked for.

    Where the best is not likely enough nothing is appended.
    """
    decision, op = selection.decide(output), selection.op
    choices = op.choices
    is_abstaining = decision.probabilities[decision.winner] < (op.abstain_below or 0)
    meta = NodeMeta(
        finish_reason=ABSTAINED if is_abstaining else "stop",
        usage=usage_of(output.usage) if output is not None else NodeUsage(),
        probabilities=dict(zip(choices, decision.probabilities, strict=True)),
        scores=dict(zip(choices, decision.scores, strict=True)),
    )
    if is_abstaining:
        return selection.branch, "", meta
    chosen = choose(decision, op.temperature or 0, share_of(seed, 0))
    return selection.chosen(codec, chosen), choices[chosen], meta


def usage_of(usage: Usage) -> NodeUsage:
    """Give a request's usage as a node's."""
    return NodeUsage(
        **{field.name: getattr(usage, field.name) for field in dataclasses.fields(NodeUsage)}
    )
