"""llama-cpp-python as its users drive it: one sequence, and its own reuse of prefixes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

CONTEXT = 4096  # tokens


def is_installed() -> bool:
    """True if there is a llama-cpp-python to compare with."""
    return find_spec("llama_cpp") is not None


class Llama:
    """One model. Each call goes on from the longest prefix it shares with the call before.

    `num_tokens` counts what was written, a choice as one token.
    """

    def __init__(self, path: Path, num_threads: int) -> None:
        self._api: Any = import_module("llama_cpp")
        self._model = self._api.Llama(
            str(path),
            n_ctx=CONTEXT,
            n_batch=512,
            n_threads=num_threads,
            n_threads_batch=num_threads,
            verbose=False,
        )
        self._grammars: dict[str, Any] = {}
        self.num_tokens = 0

    def tokens(self, text: str) -> list[int]:
        """Tokenise a text, without a token that begins it."""
        ids: list[int] = self._model.tokenize(text.encode(), add_bos=False)
        return ids

    def write(self, prompt: Sequence[int], num_tokens: int) -> list[int]:
        """Continue by exactly `num_tokens` tokens, the likeliest each; give prompt and output."""
        return [*prompt, *self._drawn(prompt, num_tokens)]

    def choose(self, prompt: Sequence[int], choices: Sequence[str]) -> str:
        """Give the choice whose first token is the likeliest."""
        first_ids = [self.tokens(choice)[0] for choice in choices]
        assert len(set(first_ids)) == len(choices), "choices that begin alike"

        def only(_: Any, logits: Any) -> Any:
            allowed = np.full_like(logits, -np.inf)
            allowed[first_ids] = logits[first_ids]
            return allowed

        processors = self._api.LogitsProcessorList([only])
        [token] = self._drawn(prompt, 1, logits_processor=processors)
        return choices[first_ids.index(token)]

    def fill_in(self, prompt: Sequence[int], schema: object, max_tokens: int) -> str:
        """Write JSON of a schema."""
        source = json.dumps(schema)
        if source not in self._grammars:
            self._grammars[source] = self._api.LlamaGrammar.from_json_schema(source, verbose=False)
        answer = self._model.create_completion(
            list(prompt), max_tokens=max_tokens, temperature=0.0, grammar=self._grammars[source]
        )
        self.num_tokens += answer["usage"]["completion_tokens"]
        text: str = answer["choices"][0]["text"]
        json.loads(text)  # it is whole, or this raises
        return text

    def _drawn(self, prompt: Sequence[int], num_tokens: int, **options: Any) -> list[int]:
        drawn = self._model.generate(list(prompt), temp=0.0, top_k=1, repeat_penalty=1.0, **options)
        self.num_tokens += num_tokens
        return list(islice(drawn, num_tokens))
