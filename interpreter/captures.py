"""What a gen captures of its output, read at the client when the text is whole."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..lang.graph import Node
from ..lang.ops import Constraint, Gen, GrammarText, JsonSchema
from ..lang.options import nearest
from ..lang.tape import Tape
from .backend import Done
from .values import Parsed, fault_of, mismatch, part_value, schema_fault, value_of

NUM_GRAMMARS = 256  # whose names are kept


@dataclass(frozen=True, slots=True)
class Values:
    """What a gen gave: its own value, and the captures by name."""

    own: Parsed
    captures: Mapping[str, Parsed] = field(default_factory=dict)
    texts: Mapping[str, str | None] = field(default_factory=dict)  # of the captures

    def get(self, capture: str | None) -> object:
        """Give the value, or a capture. Raises: Truncated, Invalid."""
        return (self.own if capture is None else self.captures[capture]).get()

    def text(self, capture: str) -> str:
        """Give the text of a capture, "" if it has none. Raises: Truncated, Invalid."""
        if capture not in self.texts:
            self.captures[capture].get()
        return self.texts[capture] or ""

    def __iter__(self) -> Iterator[Parsed]:
        yield self.own
        yield from self.captures.values()


class Reader:
    """Reads what the nodes of a tape gave, each once."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._values: dict[int, Values] = {}

    def values(self, done: Done) -> Values:
        """Give all that a node that is done gave."""
        if done.node not in self._values:
            self._values[done.node] = values_of(self._tape.node(done.node), done)
        return self._values[done.node]

    def text(self, done: Done, capture: str) -> str:
        """Give the text of a capture, "" if it has none. Raises: Truncated, Invalid."""
        return self.values(done).text(capture)


def values_of(node: Node, done: Done) -> Values:
    """Read all that a node gave."""
    op = node.op
    if not isinstance(op, Gen):
        return Values(Parsed(done.text))
    match op.constraint:
        case Constraint(schema=JsonSchema() as schema):
            return Values(value_of(node, schema, done))
        case Constraint(grammar=GrammarText() as grammar):
            if op.captures or any(schemas_of(grammar)):
                return _split(node, op, grammar, done)
        case Constraint(regex=str(regex)) if op.captures:
            return _groups(node, op, regex, done)
        case _:
            pass
    return Values(Parsed(done.text))


def schemas_of(grammar: GrammarText) -> Iterator[tuple[tuple[str, ...], JsonSchema]]:
    """Give the schemas among a grammar's parts, at every depth, each with its path."""
    for part in grammar.parts:
        inner = part.constraint
        if inner.schema is not None:
            yield (part.name,), inner.schema
        elif inner.grammar is not None:
            for path, schema in schemas_of(inner.grammar):
                yield (part.name, *path), schema


def part_mismatch(grammar: GrammarText, text: str) -> str:
    """Say how the values in a text, which is one of the grammar, fail their schemas.

    Raises: RequestError if that takes too long to say.
    """
    from ..runtime.grammar.split import splitter
    from .lowering import text_spec

    schemas = dict(schemas_of(grammar))
    split = splitter(text_spec(grammar), frozenset()).split(text) if schemas else None
    for path, schema in schemas.items():
        for value in () if split is None else split.texts(*path):
            if reason := mismatch(schema, value):
                return f"part {'.'.join(path)}: {reason}"
    return ""


def constraint_fault(
    constraint: Constraint, captures: tuple[str, ...] = ()
) -> tuple[str, str] | None:
    """Say what is wrong with a constraint, as code and reason, as far as is known here."""
    schemas = [] if constraint.schema is None else [("", constraint.schema)]
    grammar = constraint.grammar
    if grammar is not None:
        schemas += [(f"part {'.'.join(p)}: ", schema) for p, schema in schemas_of(grammar)]
    for at, schema in schemas:
        fault = schema_fault(schema)
        if fault is not None:
            return fault[0], f"{at}{fault[1]}"
    return None if grammar is None or not captures else _name_fault(grammar, captures)


@functools.lru_cache(NUM_GRAMMARS)
def _name_fault(grammar: GrammarText, captures: tuple[str, ...]) -> tuple[str, str] | None:
    from ..runtime.errors import RequestError
    from ..runtime.grammar.split import capturable
    from .lowering import text_spec

    try:
        known = capturable(text_spec(grammar))
    except RequestError as error:
        return error.code, str(error)
    for name in captures:
        if name not in known:
            what = f"captures: no rule, terminal or part is named {name}"
            return (
                "bad_grammar",
                f"{what}{nearest([name], known)}; the names are {', '.join(known)}",
            )
    return None


def _groups(node: Node, op: Gen, regex: str, done: Done) -> Values:
    own = Parsed(done.text)
    found = re.fullmatch(regex, done.text)
    if found is None or (done.meta.finish_reason == "length" and _can_go_on(regex, done.text)):
        return _cut(node, op, done, own, "the text does not match the regex")
    texts = {name: found[name] for name in op.captures}
    return Values(own, {name: Parsed(text) for name, text in texts.items()}, texts)


def _can_go_on(regex: str, text: str) -> bool:
    from ..runtime.errors import RequestError
    from ..runtime.grammar.split import splitter
    from .lowering import grammar_spec

    spec = grammar_spec(Constraint(regex=regex))
    try:
        split = splitter(spec, frozenset()).split(text)
    except RequestError:
        return True
    return split is None or split.can_go_on


def _split(node: Node, op: Gen, grammar: GrammarText, done: Done) -> Values:
    from ..runtime.errors import RequestError
    from ..runtime.grammar.split import splitter
    from .lowering import text_spec

    own = Parsed(done.text)
    try:
        split = splitter(text_spec(grammar), frozenset(op.captures)).split(done.text)
    except RequestError as error:
        return _cut(node, op, done, own, f"it cannot be split: {error}", error)
    if split is None or (done.meta.finish_reason == "length" and split.can_go_on):
        return _cut(node, op, done, own, "the text is none of the grammar's")
    for path, schema in schemas_of(grammar):
        reason = next(filter(None, (mismatch(schema, t) for t in split.texts(*path))), "")
        if reason:
            reason = f"part {'.'.join(path)}: {reason}"
            own = Parsed(fault=fault_of(node, done, reason, is_whole=True))
            break
    texts = {name: split.last(name) for name in op.captures}
    captures: dict[str, Parsed] = {}
    for name, text in texts.items():
        value = op.schema_of(name)
        captures[name] = Parsed(text)
        if text is not None and value is not None:
            captures[name] = part_value(node, value, done, text, what=f"the capture {name}")
    return Values(own, captures, texts)


def _cut(
    node: Node, op: Gen, done: Done, own: Parsed, reason: str, cause: Exception | None = None
) -> Values:
    """Give the values of an output that is not whole: no capture can be read."""
    captures = {
        name: Parsed(
            fault=fault_of(node, done, reason, cause, is_whole=False, what=f"the capture {name}")
        )
        for name in op.captures
    }
    return Values(own, captures)
