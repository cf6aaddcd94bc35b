"""Wakes a thread that sits in a poll."""

from __future__ import annotations

import contextlib
import os
import threading


class Waker:
    """A pipe whose read end a poller watches. `wake` may come from any thread, at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read, self._write = os.pipe()
        self._is_closed = False
        for descriptor in (self._read, self._write):
            os.set_blocking(descriptor, False)

    def fileno(self) -> int:
        """Give the descriptor to watch."""
        return self._read

    def wake(self) -> None:
        """Make the descriptor readable."""
        # The lock keeps a late call from writing into a file that got the number since.
        with self._lock, contextlib.suppress(BlockingIOError):
            if not self._is_closed:
                os.write(self._write, b"\0")

    def clear(self) -> None:
        """Take note of all wakes so far."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._read, 65_536)

    def close(self) -> None:
        """Give the pipe back. Idempotent."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._read)
                os.close(self._write)
