"""The seam between the engine and the grammars: what is asked for, what a matcher can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

GrammarKind: TypeAlias = Literal["regex", "choices", "lark", "ebnf", "json_schema"]
Bitmask: TypeAlias = npt.NDArray[np.int32]  # [ceil(width / 32)], bit set: token allowed


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """How values are written, and what a schema may refer to.

    `max_blanks`: blanks at each place where JSON allows them; 0 is compact. `registry`: the
    schemas that a `$ref` may name, by URI. `is_strict`: refuse what is only validated at the end.
    `is_any_order`: properties may come in any order; else as the schema lists them. `is_bare`: a
    value that is a string is written as it is, without quotes and escapes.
    """

    max_blanks: int = 0
    is_any_order: bool = False
    registry: tuple[tuple[str, str], ...] = ()  # (URI, schema as JSON)
    is_strict: bool = False
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class GrammarSpec:
    """A constraint as it was asked for: the list of choices, or one text of another kind.

    Where the text is whole, one of `stops` may follow and end it: so a model that would
    write the stop string next can, and need not say its end token instead. `schema_options`
    are read for a JSON Schema only. `parts` are the grammars that one in Lark or EBNF names.
    `prefix` are bytes that every text begins with, before what the constraint says: the end of
    a prompt that is spelled anew.
    """

    kind: GrammarKind
    source: tuple[str, ...]  # ("[0-9]+",), the choices, or one grammar or schema
    stops: tuple[str, ...] = ()
    schema_options: SchemaOptions = SchemaOptions()
    parts: tuple[tuple[str, GrammarSpec], ...] = ()
    prefix: bytes = b""


class GrammarMatcher(Protocol):
    """Where one sequence stands in a grammar. Cheap; one a sequence.

    `fill_bitmask`, `accept`, `forced` and `forced_tokens` may raise RequestError (grammar_budget)
    where a grammar turns out too large only as it is followed; the matcher is unchanged then.
    """

    def fill_bitmask(self, row: Bitmask) -> None:
        """Overwrite `row`: bits of the tokens that may come next, end tokens included
        exactly where the output may end. Ids without a token are never set."""
        ...

    def accept(self, token_id: int) -> bool:
        """Advance by a token; False, and no change, if the grammar does not allow it."""
        ...

    def rollback(self, num_tokens: int) -> None:
        """Take back the last accepted tokens."""
        ...

    def fork(self) -> GrammarMatcher:
        """Give an independent matcher in the same state."""
        ...

    @property
    def is_accepting(self) -> bool:
        """True where the text so far is a whole word of the grammar."""
        ...

    @property
    def is_finished(self) -> bool:
        """True where the text is whole and nothing can follow, or an end token was accepted."""
        ...

    def forced(self) -> bytes:
        """Give the bytes that must come next whatever the model says (b"" if none)."""
        ...

    def forced_tokens(
        self, last_id: int | None, encode: Callable[[str], Sequence[int]]
    ) -> tuple[int, ...]:
        """Give the tokens that must come next, as `encode` (the tokenizer's) spells them.

        `last_id` is the token that was accepted last, None if there was none.
        """
        ...


class CompiledGrammar(Protocol):
    """A grammar for one vocabulary: immutable, shared by all requests."""

    @property
    def size_bytes(self) -> int:
        """Memory that it holds, masks included."""
        ...

    @property
    def prefix(self) -> bytes:
        """The bytes that come before what the constraint says; see `GrammarSpec`."""
        ...

    def matcher(self) -> GrammarMatcher:
        """Start a matcher at the beginning of the text."""
        ...
