"""Serve a model: the one place where engine, service and socket meet."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from .interpreter.backends.process import FAILED_PREFIX
from .lang.errors import UsageError
from .runtime.config import EngineConfig
from .runtime.errors import EngineDied, ModelLoadError
from .runtime.serve import lifetime
from .runtime.serve.endpoint import Listener, listen

if TYPE_CHECKING:
    from .runtime.model.interface import Model
    from .runtime.model.scripted import Script


def serve(
    listen_at: str | None,
    model: str | None,
    config: EngineConfig,
    *,
    watch_parent: bool = False,
    scripted: str | None = None,
    keys: str | None = None,
) -> int:
    """Serve until a signal, or the end of the parent, says to stop; give the exit code.

    The socket is bound before the model loads: a path or port in use is found at once.
    `model` None is $PLAIT_MODEL, else the default model.

    Raises: LinkError, ModelLoadError, UsageError, EngineDied.
    """
    with contextlib.ExitStack() as stack:
        lifetime.stop_while_starting()
        if watch_parent:
            lifetime.watch_parent(lambda: _tidy(listen_at))
            stack.callback(_tidy, listen_at)
        try:
            listener = listen(listen_at, Path(keys) if keys is not None else None)
            stack.callback(listener.close)
            loaded = _scripted(scripted, config) if scripted else _loaded(model, config)
            collect_rarely()
        except Exception as error:
            if watch_parent:
                _tell_parent(error)
            raise
        asyncio.run(_serve(listener, loaded, config))
    return 0


async def _serve(listener: Listener, model: Model, config: EngineConfig) -> None:
    from .interpreter.service import GraphService
    from .runtime.grammar.disk import FOLDER
    from .runtime.load.store import default_home
    from .runtime.loop import EngineThread
    from .runtime.serve.worker import Worker

    loop = asyncio.get_running_loop()

    def post(call: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(call)

    deaths: list[EngineDied] = []

    def on_death(error: EngineDied) -> None:
        deaths.append(error)
        post(lambda: worker.stop(str(error)))

    folder = default_home() / FOLDER
    engine = EngineThread(model, config, on_death=on_death, grammar_folder=folder)
    try:
        worker = Worker(listener, GraphService(engine, post, loop.call_later))
        lifetime.stop_by(worker.stop)
        print(f"plait serves {model.name} at {listener.endpoint}", flush=True)
        await worker.run()
    finally:
        engine.close()  # before the loop closes: its outputs come to it
    if deaths:
        raise deaths[0]


def _loaded(model: str | None, config: EngineConfig) -> Model:
    from .runtime.load.store import DEFAULT_MODEL, Store, default_home

    name = model or os.environ.get("PLAIT_MODEL") or DEFAULT_MODEL
    path = Store(default_home()).resolve(name)  # before the imports that take seconds
    from .runtime.model.registry import load_model

    return load_model(path, config)


def collect_rarely() -> None:
    """Keep long garbage collections out of the steps of this process.

    Automata of grammars are many small objects that live long and hold no cycles. One pass
    over all of them takes some tenths of a second, in the middle of everybody's step, and
    finds nothing; a pass over the youngest takes a millisecond.
    """
    gc.freeze()
    gc.set_threshold(20_000, 1_000, 1_000)


def _scripted(target: str, config: EngineConfig) -> Model:
    from .cli.target import load_attribute
    from .interpreter.backends.scripted import configured_model

    script = load_attribute(target)
    if not callable(script):
        raise UsageError(f"--scripted {target}: not a function")
    return configured_model(cast("Script", script), config)


def _tidy(listen_at: str | None) -> None:
    """Remove an embedded runtime's private folder, which its parent may not be there to do."""
    if listen_at is None or not listen_at.startswith("ipc://"):
        return
    path = Path(listen_at.removeprefix("ipc://"))
    with contextlib.suppress(OSError):
        for name in (path.name, f"{path.name}.lock"):
            path.with_name(name).unlink(missing_ok=True)
        path.parent.rmdir()  # only if nothing else is in it


def _tell_parent(error: Exception) -> None:
    kind = "model" if isinstance(error, ModelLoadError) else "other"
    said = json.dumps({"kind": kind, "message": str(error)})
    print(f"{FAILED_PREFIX}{said}", file=sys.stdout, flush=True)
