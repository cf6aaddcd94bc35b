"""The engine in this process: for tests, for debugging, and for scripts without sockets."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from ...lang.errors import BackendDied, BackendUnavailable
from ...runtime.config import EngineConfig
from ...runtime.errors import EngineDied
from ...runtime.loop import EngineThread
from ...runtime.metrics import EngineStats
from ...runtime.model.interface import Model
from ..backend import Capabilities, Listener, SessionConfig
from ..executor import Executor
from ..mailbox import Mailbox
from ..posted import PostedSession

_log = logging.getLogger(__name__)


class LocalBackend:
    """Runs programs on a model in this process: an engine's thread and an executor's.

    Both are daemons, so a forgotten `close` does not keep the process alive. `engine` is one
    to take over in place of a new one. `grammar_folder` is where grammars are kept for later
    processes; see EngineThread.
    """

    def __init__(
        self,
        model: Model,
        config: EngineConfig,
        engine: EngineThread | None = None,
        grammar_folder: Path | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._sessions: set[PostedSession] = set()  # open ones
        self._is_closed = False
        self._engine = engine or EngineThread(
            model, config, on_death=self._on_death, grammar_folder=grammar_folder
        )
        self._mailbox = Mailbox("plait-executor", self._on_fault)
        self._executor = Executor(self._engine, self._mailbox.post)

    @property
    def model(self) -> Model:
        """Give the model that it runs."""
        return self._engine.model

    def capabilities(self) -> Capabilities:
        """Say what the model can do."""
        return self._executor.capabilities

    def stats(self) -> EngineStats:
        """Give a snapshot of the engine's counters."""
        return self._engine.stats()

    def open(
        self, config: SessionConfig, listener: Listener, on_lost: Callable[[Exception], None]
    ) -> PostedSession:
        """Start a run. Raises: BackendUnavailable after `close`."""
        with self._lock:
            if self._is_closed:
                raise BackendUnavailable("this backend is closed; make a new one")
            session = PostedSession(config.id, listener, on_lost, self._mailbox.post, self._forget)
            self._sessions.add(session)
        session.start(lambda listen: self._executor.open(config, listen))
        return session

    def close(self) -> None:
        """Stop both threads, within a second; open sessions get `on_lost`. Idempotent."""
        self._stop(BackendDied("the backend was closed while a run was using it"))

    def _on_fault(self, error: Exception) -> None:
        _log.error("the executor failed; its backend stops", exc_info=error)
        lost = BackendDied(f"the executor failed: {type(error).__name__}: {error}")
        lost.__cause__ = error
        self._stop(lost)

    def _on_death(self, error: EngineDied) -> None:
        lost = BackendDied(str(error))
        lost.__cause__ = error
        self._stop(lost)

    def _stop(self, error: BackendDied) -> None:
        with self._lock:
            self._is_closed = True
            sessions, self._sessions = self._sessions, set()
        for session in sessions:
            session.mute()  # it shall not see the engine cancel its nodes
        self._mailbox.close()
        self._engine.close()
        for session in sessions:
            session.lose(error)

    def _forget(self, session: PostedSession) -> bool:
        """Take a session out; False if it was out already, so each one is lost at most once."""
        with self._lock:
            was_open = session in self._sessions
            self._sessions.discard(session)
            return was_open
