"""Find the author's line: the innermost frame that is neither plait's nor Python's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine
from types import CoroutineType, FrameType, TracebackType

from .graph import Where

# `plait/` in a checkout and in a wheel alike: the parts are inside it, by link or by copy.
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PYTHON = os.path.dirname(os.__file__) + os.sep


def caller() -> Where | None:
    """Give the source line that called into plait; None if no frame is the author's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_authors(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else Where(frame.f_code.co_filename, frame.f_lineno)


def raised_at(trace: TracebackType | None) -> Where | None:
    """Give the author's line that an exception came from."""
    found: Where | None = None
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if is_authors(filename):
            found = Where(filename, trace.tb_lineno)
        trace = trace.tb_next
    return found


def suspended_at(coroutine: Coroutine[object, None, object] | None) -> Where | None:
    """Give the author's line that a coroutine waits at."""
    found: Where | None = None
    while isinstance(coroutine, CoroutineType):
        frame = coroutine.cr_frame
        if frame is not None and is_authors(frame.f_code.co_filename):
            found = Where(frame.f_code.co_filename, frame.f_lineno)
        coroutine = coroutine.cr_await
    return found


def place() -> str:
    """Give the author's line as the beginning of a message: `essay.py:12: `."""
    where = caller()
    return "" if where is None else f"{where}: "


def is_authors(filename: str) -> bool:
    """Say whether code of this file is the author's: neither plait's nor Python's own."""
    if filename.startswith(_OWN) or filename.startswith("<frozen "):
        return False
    return not filename.startswith(_PYTHON) or "site-packages" in filename
