"""A runtime process of this process's own, on a private socket."""

from __future__ import annotations

import atexit
import os
import shutil
import threading
from collections.abc import Callable
from typing import Final

from ...lang.errors import BackendError, BackendUnavailable, ModelError
from ...runtime.config import EngineConfig
from ...runtime.flags import engine_flags
from ...runtime.serve.endpoint import SOCKET_NAME, private_folder
from ..backend import Capabilities, Listener, SessionConfig
from .process import ProcessExit, RuntimeProcess
from .remote import RemoteBackend, RemoteSession

START_TIMEOUT_S: Final = 120.0


class EmbeddedBackend:
    """Starts a runtime process and runs programs on it; ready when the constructor returns.

    `model` is a pulled model's name, a GGUF file or a model folder; None is $PLAIT_MODEL,
    else the default model. `scripted` names a script, `FILE.py:function`, to serve in a
    model's place. The process ends with `close`, and with this process, however it ends.

    Raises: ModelError, BackendUnavailable.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        config: EngineConfig | None = None,
        scripted: str | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        arguments = _arguments(model, config or EngineConfig(), scripted)
        self._pid = os.getpid()
        self._lock = threading.Lock()  # guards the next two
        self._exit: ProcessExit | None = None
        self._remote: RemoteBackend | None = None
        try:
            self._folder = private_folder()
        except OSError as error:
            raise BackendUnavailable(
                f"no folder for the runtime's socket: {error}; set TMPDIR to one"
            ) from error
        self.endpoint = f"ipc://{self._folder / SOCKET_NAME}"
        try:
            self._process = RuntimeProcess(["--listen", self.endpoint, *arguments], self._on_exit)
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise BackendUnavailable(f"the runtime process does not start: {error}") from error
        atexit.register(self.close)
        try:
            self._connect(start_timeout_s)
        except BaseException:
            self.close()
            raise

    @property
    def is_lost(self) -> bool:
        """True once the runtime process is gone, or the backend is closed."""
        return self._remote is None or self._remote.is_lost

    @property
    def pid(self) -> int:
        """The runtime's process id."""
        return self._process.pid

    def capabilities(self) -> Capabilities:
        """Say what the runtime can do."""
        return self._connected().capabilities()

    def open(
        self, config: SessionConfig, listener: Listener, on_lost: Callable[[Exception], None]
    ) -> RemoteSession:
        """Start a run. Raises: BackendDied if the runtime is gone."""
        return self._connected().open(config, listener, on_lost)

    def close(self) -> None:
        """Stop the runtime; open sessions get `on_lost`. Idempotent; bounded."""
        if os.getpid() != self._pid:
            return  # a forked child: the runtime is its parent's
        atexit.unregister(self.close)
        if self._remote is not None:
            self._remote.close()
        self._process.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _connected(self) -> RemoteBackend:
        if self._remote is None:
            raise BackendError("the runtime did not start")
        return self._remote

    def _connect(self, timeout_s: float) -> None:
        remote = RemoteBackend(self.endpoint, connect_timeout_s=0)
        with self._lock:
            self._remote = remote
            ended = self._exit
        if ended is not None:
            remote.fail(ended.message)
        try:
            remote.wait(timeout_s)
        except BackendUnavailable as error:
            raise self._start_error(error) from error

    def _start_error(self, error: BackendUnavailable) -> BackendError | ModelError:
        if self._exit is None:
            return BackendUnavailable(f"the runtime process does not answer: {error}")
        if self._exit.kind == "model":
            return ModelError(self._exit.message)
        return BackendUnavailable(f"the runtime process did not start: {self._exit.message}")

    def _on_exit(self, ended: ProcessExit) -> None:
        with self._lock:
            self._exit = ended
            remote = self._remote
        if remote is not None:
            remote.fail(f"the runtime process is gone ({ended.message})")


def _arguments(model: str | None, config: EngineConfig, scripted: str | None) -> list[str]:
    arguments = ["--model", model] if model is not None else []
    if scripted is not None:
        arguments += ["--scripted", scripted]
    return arguments + engine_flags(config)
