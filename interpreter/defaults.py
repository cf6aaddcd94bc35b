"""The backend of programs that name none: one per process, with one owner."""

from __future__ import annotations

import os
import threading
from typing import Protocol, cast

from ..lang.errors import InvalidArgument
from .backend import Backend

_BACKEND_METHODS = ("capabilities", "open", "close")


class OwnBackend(Backend, Protocol):
    """A backend that can tell that it is gone, so that its owner starts another."""

    @property
    def is_lost(self) -> bool:
        """True once it cannot run anything any more."""
        ...


class DefaultBackend:
    """Own the process's default backend: start it on first use, and again if it died.

    One that was set from outside is used, and never closed here. A forked child starts its
    own: the parent's process would not answer it. What is started here ends with the process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given: Backend | None = None
        self._own: OwnBackend | None = None
        self._pid = os.getpid()  # of the process that `_own` belongs to

    @property
    def is_ready(self) -> bool:
        """Say whether `get` returns at once, with no runtime to start."""
        return self._given is not None or self._living() is not None

    def get(self) -> Backend:
        """Give the default backend; the first call starts an embedded runtime, if none was set.

        Raises: BackendUnavailable, ModelError.
        """
        with self._lock:
            if self._given is not None:
                return self._given
            living = self._living()
            if living is not None:
                return living
            self._drop()
            self._own = own = self._start()
            self._pid = os.getpid()
            return own

    def set(self, backend: Backend | None) -> None:
        """Replace the default; None goes back to an embedded runtime on first use."""
        with self._lock:
            self._given = backend
            self._drop()

    def close(self) -> None:
        """Close the backend if it was started here; idempotent."""
        with self._lock:
            self._drop()

    def _living(self) -> OwnBackend | None:
        own = self._own
        return own if own is not None and self._pid == os.getpid() and not own.is_lost else None

    def _drop(self) -> None:
        own, self._own = self._own, None
        if own is not None and self._pid == os.getpid():
            own.close()

    def _start(self) -> OwnBackend:
        from .backends.embedded import EmbeddedBackend

        return EmbeddedBackend()


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

    Raises: InvalidArgument for anything else.
    """
    _OWNER.set(None if backend is None else checked_backend(backend))


def checked_backend(value: object) -> Backend:
    """Give `value` if it is a backend. Raises: InvalidArgument, saying what to pass."""
    if isinstance(value, type) or not all(
        callable(getattr(value, name, None)) for name in _BACKEND_METHODS
    ):
        model = repr(value) if isinstance(value, str) else "model"
        raise InvalidArgument(
            f"backend={value!r} is not a backend; pass one, such as plait.local({model}) or "
            "plait.connect(endpoint)"
        )
    return cast(Backend, value)
