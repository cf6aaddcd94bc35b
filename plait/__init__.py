"""plait: a prompt-programming language in Python, and the runtime that executes it.

Importing it costs milliseconds: nothing heavier than the language is loaded before a
program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Literal

from .interpreter.backend import Backend, NodeMeta, NodeUsage
from .interpreter.defaults import set_default_backend
from .interpreter.program import Function, function
from .lang.api import assistant, gen, select, system, user
from .lang.errors import (
    BackendDied,
    BackendError,
    BackendUnavailable,
    Cancelled,
    ContextExceeded,
    GrammarError,
    GraphError,
    Invalid,
    InvalidArgument,
    JournalError,
    ModelError,
    NodeError,
    NotRecorded,
    NotSupported,
    PlaitError,
    PoolExceeded,
    ProgramError,
    RoleError,
    TemplateError,
    TimedOut,
    Truncated,
    UnknownVariable,
    UsageError,
)
from .lang.forks import Forks, Joined
from .lang.graph import Graph
from .lang.outcomes import Outcome, Retry, retry
from .lang.scores import LogProb
from .lang.state import State

if TYPE_CHECKING:
    from .interpreter.check import check
    from .interpreter.events import Event
    from .interpreter.grammar import Grammar
    from .interpreter.graph_run import run_graph
    from .interpreter.journal import Journal
    from .interpreter.plan import plan
    from .interpreter.planning.report import Plan, PlannedCall, PlannedFailure
    from .interpreter.result import Result
    from .interpreter.stream import AsyncStream, Stream
    from .lang.checks.problem import Problem
    from .lang.search import beam, best_of
    from .runtime.config import EngineConfig

# Names that most programs do not say, and where they are: imported when they are asked for.
_LATER = {
    "AsyncStream": ".interpreter.stream",
    "Event": ".interpreter.events",
    "Grammar": ".interpreter.grammar",
    "Plan": ".interpreter.planning.report",
    "PlannedCall": ".interpreter.planning.report",
    "PlannedFailure": ".interpreter.planning.report",
    "Problem": ".lang.checks.problem",
    "Result": ".interpreter.result",
    "Stream": ".interpreter.stream",
    "beam": ".lang.search",
    "best_of": ".lang.search",
    "check": ".interpreter.check",
    "plan": ".interpreter.plan",
    "run_graph": ".interpreter.graph_run",
}

__all__ = [
    "AsyncStream",
    "Backend",
    "BackendDied",
    "BackendError",
    "BackendUnavailable",
    "Cancelled",
    "ContextExceeded",
    "Event",
    "Forks",
    "Function",
    "Grammar",
    "GrammarError",
    "Graph",
    "GraphError",
    "Invalid",
    "InvalidArgument",
    "Joined",
    "JournalError",
    "LogProb",
    "ModelError",
    "NodeError",
    "NodeMeta",
    "NodeUsage",
    "NotRecorded",
    "NotSupported",
    "Outcome",
    "PlaitError",
    "Plan",
    "PlannedCall",
    "PlannedFailure",
    "PoolExceeded",
    "Problem",
    "ProgramError",
    "Result",
    "Retry",
    "RoleError",
    "State",
    "Stream",
    "TemplateError",
    "TimedOut",
    "Truncated",
    "UnknownVariable",
    "UsageError",
    "assistant",
    "beam",
    "best_of",
    "check",
    "connect",
    "function",
    "gen",
    "journal",
    "local",
    "openai",
    "plan",
    "retry",
    "run_graph",
    "scripted",
    "select",
    "set_default_backend",
    "system",
    "user",
]


def __getattr__(name: str) -> object:
    """Import one of the names of `_LATER`."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(_LATER[name], __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the names that are imported later, too."""
    return sorted({*globals(), *_LATER})


def local(model: str, **engine: object) -> Backend:
    """Load a model into this process: a pulled model's name, a GGUF file or a model folder.

    `engine` are the fields of `EngineConfig`. For tests and debugging; the default backend
    keeps the model in a process of its own.

    Raises: ModelError, InvalidArgument for an engine option.
    """
    config = _engine_config(engine)
    from .interpreter.backends.local import LocalBackend
    from .runtime.errors import ModelLoadError
    from .runtime.grammar.disk import FOLDER
    from .runtime.load.store import Store, default_home
    from .runtime.model.registry import load_model

    try:
        loaded = load_model(Store(default_home()).resolve(model), config)
    except ModelLoadError as error:
        raise ModelError(str(error)) from error
    return LocalBackend(loaded, config, grammar_folder=default_home() / FOLDER)


def connect(endpoint: str, *, keys: str | None = None) -> Backend:
    """Use a running `plait serve`; `keys` is the folder of its CURVE keys, if it has them.

    Raises: BackendUnavailable if nobody answers there.
    """
    from .interpreter.backends.remote import RemoteBackend

    return RemoteBackend(endpoint, keys=keys)


def openai(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    api: Literal["chat", "completions"] = "chat",
    emulate: bool = False,
    accepts: Collection[str] = (),
    max_context: int = 0,
    max_concurrency: int = 64,
    num_tries: int = 3,
    retries: int = 2,
    timeout_s: float = 600.0,
) -> Backend:
    """Use an OpenAI-compatible HTTP server; needs `pip install 'plait[openai]'`.

    Without `base_url` and `api_key` the client's own rules hold ($OPENAI_API_KEY). A gen of
    a chat stands first in an assistant turn. `emulate`: what such a server cannot do (select,
    choices, regex, grammar) is asked for, checked, and asked again up to `num_tries` times;
    `s.meta(name).is_emulated` says so. `accepts` names sampling options that this server takes
    beyond the API, such as "top_k". `retries` are the client's, after a rate limit or a fault
    of the server or the connection; it waits as Retry-After says.

    Raises: BackendUnavailable without the client or a key; InvalidArgument.
    """
    try:
        from .interpreter.backends.openai import OpenAIBackend
    except ModuleNotFoundError as error:
        if error.name != "openai":
            raise
        raise BackendUnavailable(
            "plait.openai needs the official client: pip install 'plait[openai]'"
        ) from error

    return OpenAIBackend(
        model,
        base_url=base_url,
        api_key=api_key,
        api=api,
        emulate=emulate,
        accepts=accepts,
        max_context=max_context,
        max_concurrency=max_concurrency,
        num_tries=num_tries,
        retries=retries,
        timeout_s=timeout_s,
    )


def scripted(
    script: Callable[[str], str | Mapping[str, float]],
    *,
    template: str | None = "default",
    adds_bos: bool = False,
    **engine: object,
) -> Backend:
    """Give a stand-in model that says what `script` answers to the text so far.

    A str is what it says before it ends; a mapping gives the probabilities of the next
    character. Deterministic and fast: for tests of programs. `template` is "default" for
    ChatML, another Jinja template, or None for a model without roles. `engine` are the
    fields of `EngineConfig`.

    Raises: InvalidArgument, for an engine option too.
    """
    config = _engine_config(engine)
    from .interpreter.backends.scripted import ScriptedBackend

    return ScriptedBackend(script, config, template=template, adds_bos=adds_bos)


def journal(path: str, *, is_replay: bool = False) -> Journal:
    """Open a journal for several runs: `with plait.journal(path) as kept: f.run(journal=kept)`.

    What it has is not run again, what it has not is added. With `is_replay` nothing is added,
    no model is asked, and a node that it does not have is `NotRecorded`.

    Raises: JournalError for a file that is in use, is no journal, or of another version.
    """
    from .interpreter.journal import Journal

    return Journal(path, is_replay=is_replay)


def _engine_config(options: Mapping[str, object]) -> EngineConfig:
    from .runtime.config import engine_config

    try:
        return engine_config(options)
    except ValueError as error:
        raise InvalidArgument(str(error)) from error
