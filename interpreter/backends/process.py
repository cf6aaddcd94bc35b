"""A `plait serve` as a child: started, watched, and stopped with its parent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

FAILED_PREFIX = "plait-failed: "  # what `plait serve --watch-parent` says before it gives up
TAIL_LINES = 20
STOP_S = 4.0
KILL_S = 1.0


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How the child ended. `kind` is "model" if it could not load its model."""

    code: int
    kind: str
    message: str


class RuntimeProcess:
    """One runtime process. It stops when `close` is called, or when this process is gone.

    Its standard input is a pipe that nobody writes to: the child stops once that closes,
    which the kernel sees to, however this process ends. `on_exit` is called on the thread
    that watches the child, once.
    """

    def __init__(self, arguments: Sequence[str], on_exit: Callable[[ProcessExit], None]) -> None:
        self._command = [sys.executable, "-m", "plait", "serve", "--watch-parent", *arguments]
        self._on_exit = on_exit
        self._is_started = threading.Event()
        self._error: OSError | None = None
        self._child: subprocess.Popen[str] | None = None
        self._pid = os.getpid()
        # The child may ask the kernel for a signal when its parent *thread* ends: so it is
        # started by the thread that lives as long as the child.
        self._thread = threading.Thread(target=self._watch, name="plait-runtime", daemon=True)
        self._thread.start()
        self._is_started.wait()
        if self._error is not None:
            raise self._error

    @property
    def pid(self) -> int:
        """The child's process id."""
        assert self._child is not None
        return self._child.pid

    def close(self) -> None:
        """Stop the child, at last by force. Idempotent; bounded."""
        if self._child is None or os.getpid() != self._pid:
            return
        assert self._child.stdin is not None
        self._child.stdin.close()
        if self._thread is threading.current_thread():
            return
        self._thread.join(STOP_S)
        for stop in (self._child.terminate, self._child.kill):
            if self._thread.is_alive():
                stop()
                self._thread.join(KILL_S)

    def _watch(self) -> None:
        try:
            self._child = self._start()
        except OSError as error:
            self._error = error
            return
        finally:
            self._is_started.set()
        assert self._child.stdout is not None
        tail: deque[str] = deque(maxlen=TAIL_LINES)
        for line in self._child.stdout:  # ends when the child does
            tail.append(line.rstrip())
        self._child.stdout.close()
        self._on_exit(_exit_of(self._child.wait(), tail))

    def _start(self) -> subprocess.Popen[str]:
        # The working folder may hold a random.py; the child must not import that.
        environment = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1"}
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # a Ctrl-C at the terminal is the parent's alone
            encoding="utf-8",
            errors="replace",
        )


def _exit_of(code: int, tail: Sequence[str]) -> ProcessExit:
    for line in reversed(tail):
        if line.startswith(FAILED_PREFIX):
            try:
                said = json.loads(line.removeprefix(FAILED_PREFIX))
                return ProcessExit(code, str(said["kind"]), str(said["message"]))
            except (ValueError, KeyError, TypeError):
                break
    last = next((line for line in reversed(tail) if line.strip()), "")
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return ProcessExit(code, "", f"{how}, after saying {last!r}" if last else how)
