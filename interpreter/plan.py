"""`plan`: what a program would cost, before a model is asked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..lang.errors import InvalidArgument
from ..lang.options import whole
from ..lang.program import Program
from ..lang.where import place
from .backend import Backend, SessionConfig
from .planning.report import Plan

if TYPE_CHECKING:
    from .model_text import ModelText

_NONE: Mapping[str, object] = MappingProxyType({})


def plan(
    program: Program,
    arguments: Mapping[str, object] = _NONE,
    *,
    rows: Iterable[Mapping[str, object]] | None = None,
    model: str | None = None,
    backend: Backend | None = None,
    output_tokens: int | None = None,
) -> Plan:
    """Give what a run with `arguments`, or a batch of `rows`, would cost; no model is asked.

    Args:
        program: What would run, with its run options.
        arguments: The program's; with `rows`, those that all rows share.
        rows: The arguments of each row of a batch.
        model: A pulled model's name, a GGUF file or a model folder, of which the tokenizer is
            read; else $PLAIT_MODEL, else the default model.
        backend: One in this process, in place of `model`.
        output_tokens: What each gen is taken to write, if it may write as much; else all that
            it may.

    Raises: InvalidArgument for missing and unknown arguments, and for what is no program;
    ModelError.
    """
    if not isinstance(program, Program):
        raise InvalidArgument(
            f"{place()}plan({program!r}): pass a program, a function under @plait.function"
        )
    # Here, because a program that only runs needs none of them.
    from .planning.plan import graphs_of, plan_graphs

    expected = whole("output_tokens", output_tokens, 0, "0 or more, or left out")
    each = [arguments] if rows is None else ({**arguments, **row} for row in rows)
    graphs = graphs_of(program, each)
    options = getattr(program, "run_options", None)
    config = SessionConfig("plan", 0) if options is None else _config(options)
    return plan_graphs(program.name, graphs, _text(model, backend), config, expected)


def _config(options: object) -> SessionConfig:
    from .options import Options

    assert isinstance(options, Options)
    return SessionConfig("plan", 0, options.sampling)


def _text(model: str | None, backend: Backend | None) -> ModelText:
    from ..runtime.load.store import DEFAULT_MODEL
    from .model_text import text_of_backend, text_of_model

    if backend is not None:
        return text_of_backend(backend)
    return text_of_model(model or os.environ.get("PLAIT_MODEL") or DEFAULT_MODEL)
