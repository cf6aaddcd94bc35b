"""Reads what nodes gave: on the thread of whoever waits for it, never on a backend's."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from ..lang.errors import Invalid, Truncated
from ..lang.graph import Node
from ..lang.ops import Gen, Select
from ..lang.tape import Tape
from .backend import ABSTAINED, Done
from .schema_values import schemas_of, value_of
from .values import Parsed, Values


class Reader:
    """Reads what the nodes of a tape gave, each once. Thread-safe.

    Reading may take seconds, and runs the author's regex and class. `_lock` alone is held
    meanwhile: others who read from the same tape wait, and nobody else does.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._lock = threading.RLock()  # a class of the author may read another value
        self._values: dict[int, Values] = {}

    @property
    def known(self) -> Mapping[int, Values]:
        """Give what has been read so far, by node; waits for nobody."""
        return MappingProxyType(self._values)

    def values(self, done: Done) -> Values:
        """Give all that a node that is done gave."""
        known = self._values.get(done.node)
        if known is not None:
            return known
        with self._lock:
            if done.node not in self._values:
                self._values[done.node] = values_of(self._tape.node(done.node), done)
            return self._values[done.node]

    def faults(self, outcomes: Iterable[Done]) -> Iterator[Truncated | Invalid]:
        """Give what is wrong with all that these nodes gave, in order."""
        for done in outcomes:
            for parsed in self.values(done):
                try:
                    parsed.get()
                except (Truncated, Invalid) as fault:
                    yield fault


def values_of(node: Node, done: Done) -> Values:
    """Read all that a node gave."""
    op = node.op
    if done.value is not None:
        done = replace(done, text=done.value)
    if isinstance(op, Select) and not op.is_text:
        return Values(Parsed(_selected(op, done)))
    if isinstance(op, Gen) and op.constraint is not None:
        schema, grammar = op.constraint.schema, op.constraint.grammar
        if schema is not None:
            return Values(value_of(node, schema, done))
        if op.captures or (grammar is not None and any(schemas_of(grammar))):
            # Here, because it needs the runtime, which `import plait` does without.
            from .captures import captured

            return captured(node, op, op.constraint, done)
    return Values(Parsed(done.text))


def _selected(op: Select, done: Done) -> object:
    """Give the value of a select that gives several choices, or may abstain."""
    if done.meta.finish_reason == ABSTAINED:
        return None if op.top is None else []
    if op.top is None:
        return done.text
    probabilities = done.meta.probabilities
    return sorted(op.choices, key=lambda choice: -probabilities[choice])[: op.top]
