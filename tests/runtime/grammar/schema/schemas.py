"""Compile schemas over a vocabulary of bytes, and ask them about texts and values."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

import jsonschema

from plait.runtime.errors import RequestError
from plait.runtime.grammar.budget import Budget
from plait.runtime.grammar.node import Node
from plait.runtime.grammar.pool import Pool
from plait.runtime.grammar.sample import matches, sample
from plait.runtime.grammar.schema.build import build_schema, root_goal, schema_grammar
from plait.runtime.grammar.schema.survey import survey
from plait.runtime.grammar.spec import SchemaOptions
from plait.runtime.grammar.state import State

from ..tokens import BYTES, allowed, is_text, matcher_at, text_of

TIMEOUT_S = 20.0
NO_VALUE = "schema: no value matches it"


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a schema; `node` and `start` None: no value matches it."""

    pool: Pool
    node: Node | None
    start: State | None
    checked: tuple[tuple[str, str], ...]  # (place, reason)

    def accepts(self, text: str) -> bool:
        """Say whether a text is one."""
        return self.start is not None and matches(self.start, self.pool, text)

    def holds(self, value: object) -> bool:
        """Say whether the compact text of a value is one."""
        return self.accepts(compact(value))

    def of(self, *texts: str) -> str:
        """Give those of some texts that are accepted, with blanks in between."""
        return " ".join(text for text in texts if self.accepts(text))

    def sample(self, seed: int, max_bytes: int = 60) -> str:
        """Give a random text."""
        assert self.start is not None
        return sample(self.start, self.pool, random.Random(seed), max_bytes).decode()


def texts_of(
    schema: object, options: SchemaOptions | None = None, pool: Pool | None = None
) -> Texts:
    """Compile a schema, given as a value or as its text.

    Raises: RequestError, but for "no value matches it".
    """
    pool = pool or Pool(BYTES)
    options = options or SchemaOptions()
    source = schema if isinstance(schema, str) else json.dumps(schema)
    with pool.using(Budget(TIMEOUT_S, 10**7)):
        try:
            node = build_schema(source, pool, options)
        except RequestError as e:
            if str(e) != NO_VALUE:
                raise
            return Texts(pool, None, None, ())
        grammar = schema_grammar(source, pool, options)
        checked = survey(grammar, root_goal(grammar)).checked
        start = pool.pushdown.closure(pool.pushdown.push(node, None))
    return Texts(pool, node, start, checked)


def texts(schema: object, **options: Any) -> Texts:
    """Compile a schema with some options."""
    return texts_of(schema, SchemaOptions(**options))


def closed(properties: dict[str, object], *required: str) -> dict[str, object]:
    """Give objects of some properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def kept(schema: object, right: list[str], wrong: list[str]) -> None:
    """Check texts; what is JSON among them also against the library."""
    found = texts(schema)
    assert [text for text in right if not found.accepts(text)] == []
    assert [text for text in wrong if found.accepts(text)] == []
    for text in right:
        assert is_valid(schema, json.loads(text))


def walked(texts: Texts, seed: int, num_tokens: int) -> str:
    """Follow random tokens for a while, then a short way to the end: there always is one.

    The pool must be over VOCABULARY.
    """
    assert texts.start is not None
    begun, rng = followed(texts, seed, num_tokens), random.Random(seed)
    with texts.pool.using(Budget(TIMEOUT_S, 10**7)):
        state = texts.pool.pushdown.advance(texts.start, begun)
    assert state is not None
    return (begun + sample(state, texts.pool, rng, 0)).decode()


def followed(texts: Texts, seed: int, num_tokens: int) -> bytes:
    """Follow random tokens for a while, or to the end; the pool must be over VOCABULARY."""
    assert texts.node is not None
    rng = random.Random(seed)
    matcher = matcher_at(texts.node, texts.pool)
    taken: list[int] = []
    for _ in range(num_tokens):
        choices = [i for i in allowed(matcher) if is_text(i)]
        if not choices:
            break
        taken.append(rng.choice(choices))
        assert matcher.accept(taken[-1]), "a mask holds a token that is not accepted"
    return text_of(taken)


def compact(value: object) -> str:
    """Write a value as grammars write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_valid(schema: Any, value: Any) -> bool:
    """Ask the library."""
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))
