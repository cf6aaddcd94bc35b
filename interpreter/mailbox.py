"""One thread that runs callbacks in the order in which they were posted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

_CLOSE_S = 0.5


class Mailbox:
    """A thread and its queue. A callback that raises ends it, and `on_fault` gets the error."""

    def __init__(self, name: str, on_fault: Callable[[Exception], None]) -> None:
        self._on_fault = on_fault
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def post(self, callback: Callable[[], None]) -> None:
        """Run `callback` on the thread, after those posted before; thread-safe."""
        self._queue.put(callback)

    def close(self) -> None:
        """Stop once what was posted is done; wait for it, but not for long. Idempotent."""
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while (callback := self._queue.get()) is not None:
            try:
                callback()
            except Exception as e:
                self._on_fault(e)
                return
