"""Rules about constraints: whether they compile, what they match, and what cuts them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..lang.checks.problem import Finding, Rule
from ..lang.checks.subject import Subject
from ..lang.checks.table import RULES
from ..lang.errors import GrammarError
from ..lang.graph import Node
from ..lang.ops import Constraint, Gen
from ..lang.words import spell
from .screen import constraint_fault

NUM_SAMPLES = 20  # texts of a grammar that are looked at
_NOTHING = re.compile("no (text|value) matches")


def bad_grammar(subject: Subject) -> Iterator[Finding]:
    """A regular expression, schema or grammar does not compile."""
    for node, constraint, op in _constraints(subject):
        reason = _refusal(constraint, op.captures)
        if reason and not _NOTHING.search(reason):
            reason = " ".join(reason.split())
            remedy = "try it out with plait.Grammar(...).explain()"
            yield Finding(node.where, f"{spell(op)}: {reason}", remedy, node.id)


def matches_nothing(subject: Subject) -> Iterator[Finding]:
    """No text at all matches a regular expression, schema or grammar."""
    for node, constraint, op in _constraints(subject):
        reason = _refusal(constraint, ())
        if _NOTHING.search(reason):
            remedy = "loosen it: plait.Grammar(...).match(text) says what it takes"
            yield Finding(node.where, f"{spell(op)}: {reason}", remedy, node.id)


def stop_hides_text(subject: Subject) -> Iterator[Finding]:
    """A stop string is inside texts of a constraint, and so cuts them."""
    for node, constraint, op in _constraints(subject):
        for stop in op.sampling.stop or ():
            cut = _text_with(constraint, stop)
            if cut is not None:
                yield Finding(
                    node.where,
                    f"{spell(op)}: the stop {stop!r} is inside a text of its constraint, such as "
                    f"{cut!r}, and cuts it",
                    "leave the stop out: the constraint ends the text by itself",
                    node.id,
                )


def limit_cuts_text(subject: Subject) -> Iterator[Finding]:
    """`max_tokens` is less than the shortest text of a constraint takes."""
    if subject.model is None or subject.model.num_tokens is None:
        return
    for node, constraint, op in _constraints(subject):
        most = op.sampling.max_tokens
        shortest = None if most is None else _shortest(constraint, subject.num_tokens)
        if most is not None and shortest is not None and subject.num_tokens(shortest) > most:
            yield Finding(
                node.where,
                f"{spell(op)}: max_tokens={most} cuts even its shortest text, {shortest[:60]!r} "
                f"of {subject.num_tokens(shortest)} tokens",
                "raise max_tokens, or leave it out: the constraint ends the text by itself",
                node.id,
            )


GRAMMAR_RULES = (
    Rule("bad_grammar", "error", bad_grammar),
    Rule("matches_nothing", "error", matches_nothing),
    Rule("limit_cuts_text", "warning", limit_cuts_text),
    Rule("stop_hides_text", "warning", stop_hides_text),
)
ALL_RULES: tuple[Rule, ...] = (*RULES, *GRAMMAR_RULES)


def _constraints(subject: Subject) -> Iterator[tuple[Node, Constraint, Gen]]:
    """Give each gen with a constraint, one of several alike from one line."""
    seen: set[object] = set()
    for node in subject.writers:
        op = node.op
        if isinstance(op, Gen) and op.constraint is not None and (op, node.where) not in seen:
            seen.add((op, node.where))
            yield node, op.constraint, op


def _refusal(constraint: Constraint, captures: tuple[str, ...]) -> str:
    """Say why a constraint is refused; nothing if it is not."""
    # Here, because a check of a program without constraints does without the runtime.
    from ..runtime.errors import RequestError
    from ..runtime.grammar.explain import compile_plain
    from .lowering import grammar_spec

    try:
        fault = constraint_fault(constraint, captures)
        if fault is None:
            compile_plain(grammar_spec(constraint))
    except RequestError as error:
        return str(error)
    return "" if fault is None else fault.reason


def _text_with(constraint: Constraint, part: str) -> str | None:
    """Give a text of the constraint that has `part` in it, None if none was found.

    Of a regular expression one is found if there is any; of a schema or a grammar some
    random texts are looked at.
    """
    if constraint.choices is not None:
        return next((choice for choice in constraint.choices if part in choice), None)
    if constraint.regex is not None:
        ahead = rf"(?=[\s\S]*{re.escape(part)})(?:{constraint.regex})"
        found = _samples(Constraint(regex=ahead), 1, 0) or _samples(constraint, NUM_SAMPLES)
    else:
        found = _samples(constraint, NUM_SAMPLES)
    return next((text for text in found if part in text), None)


def _shortest(constraint: Constraint, num_tokens: Callable[[str], int]) -> str | None:
    if constraint.choices is not None:
        return min(constraint.choices, key=num_tokens)
    return next(iter(_samples(constraint, 1, 0)), None)


def _samples(constraint: Constraint, count: int, max_bytes: int = 120) -> tuple[str, ...]:
    """Give random texts of a constraint; of one that is refused, or has no short end, none."""
    from ..runtime.errors import RequestError
    from ..runtime.grammar.explain import compile_plain, samples
    from .lowering import grammar_spec

    try:
        return samples(compile_plain(grammar_spec(constraint)), count, 0, max_bytes)
    except (RequestError, GrammarError):
        return ()
