"""The backend of programs that name none: one per process, with one owner."""

from __future__ import annotations

import atexit
import os
import threading

from .backend import Backend


class DefaultBackend:
    """Own the process's default backend: start it on first use, close it at exit.

    One that was set from outside is used, and never closed here. A forked child starts its
    own: the parent's process would not answer it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._backend: Backend | None = None
        self._is_ours = False
        self._pid = os.getpid()

    @property
    def is_ready(self) -> bool:
        """Say whether `get` returns at once, with no runtime to start."""
        return self._backend is not None and self._pid == os.getpid()

    def get(self) -> Backend:
        """Give the default backend; the first call starts an embedded runtime, if none was set.

        Raises: BackendUnavailable, ModelError.
        """
        with self._lock:
            if not self.is_ready:
                self._backend = self._start()
                self._is_ours = True
                self._pid = os.getpid()
            assert self._backend is not None
            return self._backend

    def set(self, backend: Backend | None) -> None:
        """Replace the default; None goes back to an embedded runtime on first use."""
        with self._lock:
            old = self._backend if self._is_ours and self.is_ready else None
            self._backend = backend
            self._is_ours = False
            self._pid = os.getpid()
        if old is not None:
            old.close()

    def close(self) -> None:
        """Close the backend if it was started here; idempotent."""
        self.set(None)

    def _start(self) -> Backend:
        from .backends.embedded import EmbeddedBackend

        backend = EmbeddedBackend()
        atexit.register(self.close)
        return backend


# The one process-wide thing: `f.run()` with no backend has nowhere else to look.
_OWNER = DefaultBackend()


def default_backend() -> Backend:
    """Give the backend of programs that name none; the first call starts it."""
    return _OWNER.get()


def is_default_ready() -> bool:
    """Say whether `default_backend` returns at once."""
    return _OWNER.is_ready


def set_default_backend(backend: Backend | None) -> None:
    """Let programs that name no backend use this one; None: an embedded runtime again.

    The caller keeps it, and closes it.
    """
    _OWNER.set(backend)
