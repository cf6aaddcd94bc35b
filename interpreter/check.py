"""Find what is wrong with a program before any model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..lang.checks.problem import Problem
from ..lang.errors import InvalidArgument
from ..lang.program import Program
from ..lang.where import place
from .backend import Backend

if TYPE_CHECKING:
    from ..lang.checks.subject import ModelFacts

_NONE: Mapping[str, object] = MappingProxyType({})


def check(
    program: Program,
    arguments: Mapping[str, object] = _NONE,
    *,
    model: str | None = None,
    backend: Backend | None = None,
) -> list[Problem]:
    """Give what is wrong with a program, in order of its lines; no model is asked.

    The body is traced, with `arguments`; those left out stay open. The rules about a model
    (its context, its chat template) need one: `model` is a pulled model's name, a GGUF file or a
    model folder, of which the tokenizer alone is read; a `backend` says what it has.

    Raises: InvalidArgument for what is no program, and for unknown arguments; ModelError;
    BackendError.
    """
    if not isinstance(program, Program):
        raise InvalidArgument(
            f"{place()}check({program!r}): pass a program, a function under @plait.function"
        )
    # Here, because a program that only runs needs none of them.
    from ..lang.checks.subject import subject_of
    from ..lang.checks.table import problems_of
    from .grammar_rules import ALL_RULES
    from .model_text import text_of_model

    known = program.given(arguments)
    facts = text_of_model(model).facts() if model is not None else _facts(backend)
    return problems_of(subject_of(program, known, facts), ALL_RULES)


def _facts(backend: Backend | None) -> ModelFacts | None:
    """Give what a backend says of its model, with its tokenizer if it is in this process."""
    if backend is None:
        return None
    from ..lang.checks.subject import ModelFacts

    can = backend.capabilities()
    model = getattr(backend, "model", None)
    encode = None if model is None else model.tokenizer.encode
    num_tokens = None if encode is None else lambda text: len(encode(text))
    return ModelFacts(can.model, can.max_context, can.has_chat_template, num_tokens)
