"""What a gen captures of its output, and the parts of it that are schemas: read when it is whole.

It needs the runtime's grammars, so those who use it import it where they do.
"""

from __future__ import annotations

import re

from ..lang.errors import Invalid, Truncated
from ..lang.graph import Node
from ..lang.ops import Constraint, Gen, GrammarText
from ..runtime.errors import RequestError
from ..runtime.grammar.split import Split, splitter
from .backend import Done
from .lowering import grammar_spec, text_spec
from .schema_values import in_part, mismatch, part_value, schemas_of
from .values import Parsed, Values, fault_of

_NO_MATCH = "the text does not match the regex"


def captured(node: Node, op: Gen, constraint: Constraint, done: Done) -> Values:
    """Read what a gen with a grammar or a regex gave."""
    if constraint.grammar is not None:
        return _split(node, op, constraint.grammar, done)
    assert constraint.regex is not None  # nothing else has parts
    return _groups(node, op, constraint.regex, done)


def part_mismatch(grammar: GrammarText, text: str) -> str:
    """Say how the values in a text, which is one of the grammar, fail their schemas.

    Raises: RequestError if that takes too long to say.
    """
    if not any(schemas_of(grammar)):
        return ""
    split = splitter(text_spec(grammar), frozenset()).split(text)
    return "" if split is None else _first_mismatch(grammar, split)


def _first_mismatch(grammar: GrammarText, split: Split) -> str:
    for path, schema in schemas_of(grammar):
        for text in split.texts(*path):
            if reason := mismatch(schema, text):
                return in_part(path, reason)
    return ""


def _groups(node: Node, op: Gen, regex: str, done: Done) -> Values:
    own = Parsed(done.text)
    # Python's `re` may take forever to find that a text does not match: it sees those that do.
    if done.meta.finish_reason == "length" or done.meta.stop_reason is not None:
        try:
            split = splitter(grammar_spec(Constraint(regex=regex)), frozenset()).split(done.text)
        except RequestError as error:
            return _cut(node, op, done, own, f"it cannot be split: {error}", error)
        if _is_cut(split, done):
            return _cut(node, op, done, own, _NO_MATCH, can_go_on=split is not None)
    found = re.fullmatch(regex, done.text)
    if found is None:
        return _cut(node, op, done, own, _NO_MATCH)
    texts = {name: found[name] for name in op.captures}
    return Values(own, {name: Parsed(text) for name, text in texts.items()}, texts)


def _is_cut(split: Split | None, done: Done) -> bool:
    return split is None or (done.meta.finish_reason == "length" and split.can_go_on)


def _split(node: Node, op: Gen, grammar: GrammarText, done: Done) -> Values:
    own = Parsed(done.text)
    try:
        split = splitter(text_spec(grammar), frozenset(op.captures)).split(done.text)
    except RequestError as error:
        return _cut(node, op, done, own, f"it cannot be split: {error}", error)
    if split is None or _is_cut(split, done):
        reason = "the text is none of the grammar's"
        return _cut(node, op, done, own, reason, can_go_on=split is not None)
    if reason := _first_mismatch(grammar, split):
        own = Parsed(fault=fault_of(node, done, reason, is_whole=True))
    texts = {name: split.last(name) for name in op.captures}
    captures: dict[str, Parsed] = {}
    for name, text in texts.items():
        schema = op.schema_of(name)
        captures[name] = Parsed(text)
        if text is not None and schema is not None:
            captures[name] = part_value(node, schema, done, text, what=f"the capture {name}")
    return Values(own, captures, texts)


def _cut(
    node: Node,
    op: Gen,
    done: Done,
    own: Parsed,
    reason: str,
    cause: Exception | None = None,
    *,
    can_go_on: bool = False,
) -> Values:
    """Give the values of an output that is not whole, or may not be: no capture can be read."""

    def fault(name: str) -> Truncated | Invalid:
        what = f"the capture {name}"
        return fault_of(node, done, reason, cause, is_whole=False, what=what, can_go_on=can_go_on)

    return Values(own, {name: Parsed(fault=fault(name)) for name in op.captures})
