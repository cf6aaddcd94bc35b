"""Private folders that a killed worker has left behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from pathlib import Path

STALE_S = 60.0  # a younger lock may belong to a worker that is about to take it


def remove_stale(parent: Path, prefix: str, lock_name: str) -> None:
    """Remove this user's folders `PREFIX*` whose lock nobody holds: its owner is dead.

    A folder without a lock is left alone: its worker may just be starting.
    """
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # another process removes it at the same time
            if _is_ours(folder) and _is_abandoned(folder / lock_name):
                shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    return not folder.is_symlink() and folder.stat().st_uid == os.getuid()


def _is_abandoned(lock: Path) -> bool:
    if not lock.is_file() or time.time() - lock.stat().st_mtime < STALE_S:
        return False
    descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
