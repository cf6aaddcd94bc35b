"""The grammar engines of benchmarks/grammar.py under one interface: plait and llguidance."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.spec import Bitmask, GrammarMatcher, GrammarSpec, SchemaOptions
from plait.runtime.grammar.vocabulary import Vocabulary
from plait.runtime.model.tokenizer import TextTokenizer

Schema: TypeAlias = dict[str, Any]  # as json.loads gives it


class Session(Protocol):
    """One text in progress."""

    def fill(self, row: Bitmask) -> None:
        """Compute the mask of the next token."""
        ...

    def accept(self, token_id: int) -> bool:
        """Take a token."""
        ...

    def forced(self, last_id: int | None) -> tuple[int, ...]:
        """Give the tokens that must come next."""
        ...

    @property
    def is_accepting(self) -> bool:
        """True where the text may end."""
        ...


class Engine(Protocol):
    """A grammar engine under test."""

    def compile(self, schema: Schema) -> object:
        """Compile a schema; raise whatever the library raises for one that it refuses."""
        ...

    def session(self, grammar: Any) -> Session:
        """Start a text."""
        ...


class Plait:
    """plait's compiler, with a pool of automata for all schemas."""

    def __init__(
        self, vocabulary: Vocabulary, tokenizer: TextTokenizer, is_any_order: bool
    ) -> None:
        self._compiler = GrammarCompiler(vocabulary, timeout_s=10.0, max_states=1_000_000)
        self._options = SchemaOptions(is_any_order=is_any_order)
        self._tokenizer = tokenizer

    def spec(self, schema: Schema) -> GrammarSpec:
        """Give what is asked of the compiler."""
        return GrammarSpec("json_schema", (json.dumps(schema),), schema_options=self._options)

    def compile(self, schema: Schema) -> object:
        """Compile a schema."""
        return self._compiler.compile(self.spec(schema))

    def session(self, grammar: Any) -> Session:
        """Start a text."""
        return PlaitSession(grammar.matcher(), self._tokenizer)


class PlaitSession:
    """A matcher under the benchmark's names."""

    def __init__(self, matcher: GrammarMatcher, tokenizer: TextTokenizer) -> None:
        self._matcher = matcher
        self._encode = tokenizer.encode
        self.fill = matcher.fill_bitmask
        self.accept = matcher.accept

    def forced(self, last_id: int | None) -> tuple[int, ...]:
        """Give the tokens that must come next."""
        return self._matcher.forced_tokens(last_id, self._encode)

    @property
    def is_accepting(self) -> bool:
        """True where the text may end."""
        return self._matcher.is_accepting


class LLGuidance:
    """llguidance with its defaults, but for compact JSON."""

    def __init__(self, tokenizer_path: Path, vocabulary: Vocabulary) -> None:
        self._library = importlib.import_module("llguidance")
        text = tokenizer_path.read_text(encoding="utf-8")
        eos = min(vocabulary.eos_ids)
        self._tokens = self._library.LLTokenizer(text, n_vocab=vocabulary.width, eos_token=eos)

    def compile(self, schema: Schema) -> object:
        """Compile a schema. Raises: ValueError if it is refused."""
        matcher = self._library.LLMatcher
        defaults = {"whitespace_flexible": False}
        grammar = matcher.grammar_from_json_schema(json.dumps(schema), defaults=defaults)
        found = matcher(self._tokens, grammar)
        if found.is_error():
            raise ValueError(found.get_error())
        return found

    def session(self, grammar: Any) -> Session:
        """Start a text."""
        grammar.reset()
        return LLSession(grammar)


class LLSession:
    """A matcher of llguidance under the benchmark's names."""

    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher
        self.accept = matcher.consume_token

    def fill(self, row: Bitmask) -> None:
        """Compute the mask."""
        self._matcher.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)

    def forced(self, last_id: int | None) -> tuple[int, ...]:
        """Give the tokens that must come next."""
        return tuple(self._matcher.compute_ff_tokens())

    @property
    def is_accepting(self) -> bool:
        """True where the text may end."""
        return bool(self._matcher.is_accepting())
