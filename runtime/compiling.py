"""A thread that compiles grammars, so that the engine's loop never waits for one."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Protocol, TypeAlias

from .errors import RequestError
from .grammar.spec import CompiledGrammar, GrammarSpec

Compiled: TypeAlias = CompiledGrammar | RequestError

_log = logging.getLogger(__name__)


class Grammars(Protocol):
    """What the engine asks of a grammar compiler."""

    def compile(self, spec: GrammarSpec) -> CompiledGrammar:
        """Compile, or find what was compiled before. Raises: RequestError."""
        ...


class CompilerThread:
    """Compiles one grammar after another. A daemon: it never holds up the end of the process.

    `start` gives the compiler. It is called on the thread, once the first grammar comes:
    its tables over the whole vocabulary take time that start-up need not pay.
    """

    def __init__(self, start: Callable[[], Grammars]) -> None:
        self._start = start
        self._grammars: Grammars | None = None
        self._queue: queue.SimpleQueue[tuple[GrammarSpec, Callable[[Compiled], object]] | None]
        self._queue = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, spec: GrammarSpec, done: Callable[[Compiled], object]) -> None:
        """Compile `spec`, then call `done` on this thread. Call it from one thread only."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="plait-grammar", daemon=True)
            self._thread.start()
        self._queue.put((spec, done))

    def close(self) -> None:
        """Stop after the grammar in progress."""
        self._queue.put(None)

    def _loop(self) -> None:
        while (task := self._queue.get()) is not None:
            spec, done = task
            done(self._compile(spec))

    def _compile(self, spec: GrammarSpec) -> Compiled:
        try:
            if self._grammars is None:
                self._grammars = self._start()
            return self._grammars.compile(spec)
        except RequestError as e:
            return e
        except Exception as e:
            _log.exception("the grammar compiler failed on %r", spec)
            return RequestError("internal", f"grammar: {type(e).__name__}: {e}")
