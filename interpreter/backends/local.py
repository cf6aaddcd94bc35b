"""The engine in this process: for tests, for debugging, and for scripts without sockets."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from ...lang.errors import BackendDied, BackendUnavailable
from ...lang.graph import Node
from ...runtime.config import EngineConfig
from ...runtime.errors import EngineDied
from ...runtime.loop import EngineThread
from ...runtime.metrics import EngineStats
from ...runtime.model.interface import Model
from ..backend import Capabilities, Done, Listener, NodeEvent, SessionConfig
from ..executor import Executor, ExecutorSession
from ..mailbox import Mailbox

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
        self._sessions: set[_LocalSession] = set()  # open ones
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
    ) -> _LocalSession:
        """Start a run. Raises: BackendUnavailable after `close`."""
        with self._lock:
            if self._is_closed:
                raise BackendUnavailable("this backend is closed; make a new one")
            session = _LocalSession(config, listener, on_lost, self._mailbox.post, self._forget)
            self._sessions.add(session)
        session.start(self._executor)
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

    def _forget(self, session: _LocalSession) -> bool:
        """Take a session out; False if it was out already, so each one is lost at most once."""
        with self._lock:
            was_open = session in self._sessions
            self._sessions.discard(session)
            return was_open


class _LocalSession:
    """A run, as other threads see it: each call is posted to the executor's thread."""

    def __init__(
        self,
        config: SessionConfig,
        listener: Listener,
        on_lost: Callable[[Exception], None],
        post: Callable[[Callable[[], None]], None],
        forget: Callable[[_LocalSession], bool],
    ) -> None:
        self._config = config
        self._listener = listener
        self._on_lost = on_lost
        self._post = post
        self._forget = forget
        self._inner: ExecutorSession | None = None  # the executor's thread's
        self._is_open = True

    def start(self, executor: Executor) -> None:
        """Open the session on the executor's thread."""

        def start() -> None:
            self._inner = executor.open(self._config, self._listen)

        self._post(start)

    def submit(self, nodes: Sequence[Node], known: Sequence[Done] = ()) -> None:
        """Add a segment."""
        segment, done = tuple(nodes), tuple(known)
        self._call(lambda session: session.submit(segment, done))

    def cancel(self, nodes: Sequence[int]) -> None:
        """Stop these nodes and all that depend on them; idempotent."""
        ids = tuple(nodes)
        self._call(lambda session: session.cancel(ids))

    def close(self) -> None:
        """Stop everything, give all resources back; idempotent."""
        self._is_open = False
        self._forget(self)
        self._call(lambda session: session.close())

    def mute(self) -> None:
        """Give the run no more events."""
        self._is_open = False

    def lose(self, error: Exception) -> None:
        """Tell the run that its backend is gone; no event comes after it."""
        self.mute()
        self._on_lost(error)

    def _call(self, act: Callable[[ExecutorSession], None]) -> None:
        def call() -> None:
            assert self._inner is not None, "start was posted first"
            act(self._inner)

        self._post(call)

    def _listen(self, events: Sequence[NodeEvent]) -> None:
        if not self._is_open:
            return
        try:
            self._listener(events)
        except Exception as e:
            # A listener is its run's own: one that fails loses that run, and no other.
            _log.exception("the listener of run %s raised", self._config.id)
            self._call(lambda session: session.close())
            if self._forget(self):
                self.lose(e)
