"""Find the author's line: the first frame outside plait's own files."""

from __future__ import annotations

import os
import sys

from .graph import Where

# `plait/` in a checkout and in a wheel alike: the parts are inside it, by link or by copy.
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def caller() -> Where | None:
    """Give the source line that called into plait; None if no frame is the author's."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_OWN):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return Where(frame.f_code.co_filename, frame.f_lineno)


def place() -> str:
    """Give the author's line as the beginning of a message: `essay.py:12: `."""
    where = caller()
    return "" if where is None else f"{where}: "
