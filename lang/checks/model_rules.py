"""Rules about what a model can take: its context, its chat template, the tokens that it shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..graph import Node
from ..ops import Gen, Input, RoleBegin, Select, Text, Value
from ..words import spell
from .problem import Finding
from .subject import Subject

# Fewer tokens are cheaper to compute again than to think about.
MIN_SHARED = 32


@dataclass(frozen=True, slots=True)
class _Size:
    """Tokens up to a node: those that are sure, and those that may be."""

    least: int = 0
    most: int | None = 0  # None: no bound is known


def no_template(subject: Subject) -> Iterator[Finding]:
    """The program has turns, and the model has no chat template."""
    model = subject.model
    if model is None or model.has_chat_template:
        return
    begin = next((n for n in subject.graph.nodes if isinstance(n.op, RoleBegin)), None)
    if begin is not None:
        yield Finding(
            begin.where,
            f"{model.name} has no chat template, so it has no roles",
            "write the turns as plain text, or take an instruction-tuned model",
            begin.id,
        )


def over_context(subject: Subject) -> Iterator[Finding]:
    """A prompt is longer than the model's context, whatever the arguments are."""
    model = subject.model
    if model is None:
        return
    sizes = _sizes(subject)
    for node in subject.writers:
        least = 0 if node.prev is None else sizes[node.prev].least
        if least >= model.max_context:
            yield Finding(
                node.where,
                f"{subject.about}{least} tokens stand before {spell(node.op)}; "
                f"the context of {model.name} holds {model.max_context}",
                "shorten the text, or fork before it",
                node.id,
            )
            return  # what follows is longer still


def may_pass_context(subject: Subject) -> Iterator[Finding]:
    """A prompt with what gens may write is longer than the model's context."""
    model = subject.model
    if model is None:
        return
    sizes = _sizes(subject)
    for node in subject.writers:
        before = _Size() if node.prev is None else sizes[node.prev]
        own = node.op.sampling.max_tokens if isinstance(node.op, Gen) else 0
        if own is None or before.most is None or before.least >= model.max_context:
            continue
        if before.most + own > model.max_context:
            yield Finding(
                node.where,
                f"up to {before.most} tokens before {spell(node.op)} and max_tokens={own} are "
                f"more than the {model.max_context} of {model.name}'s context",
                "lower max_tokens of the gens, or shorten the text",
                node.id,
            )
            return


def constant_after_argument(subject: Subject) -> Iterator[Finding]:
    """A constant text stands after an argument, so no other row shares its tokens."""
    for first, text in _unshared(subject).values():
        num_tokens = subject.num_tokens(text)
        if num_tokens >= MIN_SHARED:
            yield Finding(
                first.where,
                f"{subject.about}{num_tokens} constant tokens stand after an argument: each row "
                "computes them anew",
                "put the constant text before the argument, where all rows share it",
                first.id,
            )


def _sizes(subject: Subject) -> dict[int, _Size]:
    """Give the tokens up to and with each node; templates count for nothing."""
    sizes: dict[int, _Size] = {}
    written: dict[int, int | None] = {}
    for node in subject.graph.nodes:
        before = _Size() if node.prev is None else sizes[node.prev]
        least, most = _added(subject, node, written)
        if isinstance(node.op, Gen | Select):
            written[node.id] = most
        total = None if most is None or before.most is None else before.most + most
        sizes[node.id] = _Size(before.least + least, total)
    return sizes


def _added(subject: Subject, node: Node, written: dict[int, int | None]) -> tuple[int, int | None]:
    match node.op:
        case Text(text=text):
            num_tokens = subject.num_tokens(text)
            return num_tokens, num_tokens
        case Gen(sampling=sampling):
            return 0, sampling.max_tokens
        case Select(choices=choices):
            lengths = [subject.num_tokens(choice) for choice in choices]
            return min(lengths), max(lengths)
        case Value(source=source):
            return 0, written.get(source.node)
        case Input():
            return 0, None
        case _:
            return 0, 0


def _unshared(subject: Subject) -> dict[int, tuple[Node, str]]:
    """Give the constant text between the first argument and the first gen of each chain.

    By the node where it begins, so that branches that share it count it once.
    """
    found: dict[int, tuple[Node, str]] = {}
    state: dict[int, tuple[bool, Node | None, str]] = {}  # past an argument, first text, all of it
    ended: set[int] = set()  # nodes at or after a gen
    for node in subject.graph.nodes:
        is_past, first, text = (False, None, "") if node.prev is None else state[node.prev]
        if node.prev in ended or isinstance(node.op, Gen | Select):
            if node.prev not in ended and first is not None:
                found.setdefault(first.id, (first, text))
            ended.add(node.id)
        if isinstance(node.op, Input):
            is_past = True
        elif isinstance(node.op, Text) and is_past:
            first, text = first or node, text + node.op.text
        state[node.id] = (is_past, first, text)
    return found
