"""When a serving process stops: on a signal, or when its parent is gone."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

PARENT_GONE: Final = signal.SIGHUP
STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, PARENT_GONE)
FORCE_S: Final = 3.0  # how long an orderly stop may take once the parent is gone
_PR_SET_PDEATHSIG: Final = 1


def watch_parent(tidy: Callable[[], None]) -> None:
    """Signal PARENT_GONE to this process once its standard input closes.

    Whoever started it holds the other end of that pipe; the kernel closes it, however that
    process ends. If this process does not stop in time then, it calls `tidy` and ends by
    force. The standard input itself is left to nobody else.
    """
    descriptor = os.dup(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    thread = threading.Thread(
        target=_wait_for_end, args=(descriptor, tidy), name="plait-parent", daemon=True
    )
    thread.start()
    if sys.platform == "linux":  # sooner than the pipe, if a sibling process holds that open
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(PARENT_GONE))


def stop_while_starting() -> None:
    """Let a stop signal unwind the main thread: nothing is being served yet."""

    def unwind(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    for number in STOP_SIGNALS:
        signal.signal(number, unwind)


def stop_by(stop: Callable[[], None]) -> None:
    """Call `stop` at the first stop signal, on the running loop; the second ends the process.

    Not the loop's own signal handlers: those are gone once it closes, and then a late
    signal would end the process before its files are removed.
    """
    loop = asyncio.get_running_loop()
    has_asked = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal has_asked
        if not has_asked:
            has_asked = True
            loop.call_soon_threadsafe(stop)
        elif number != PARENT_GONE:  # that one comes from the pipe and from the kernel
            os._exit(128 + number)

    for number in STOP_SIGNALS:
        signal.signal(number, on_signal)


def _wait_for_end(descriptor: int, tidy: Callable[[], None]) -> None:
    while os.read(descriptor, 4096):
        pass
    os.kill(os.getpid(), PARENT_GONE)
    time.sleep(FORCE_S)
    tidy()
    os._exit(128 + PARENT_GONE)
