"""Entries of bytes in a folder that processes share: read at once, written beside the caller."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = "grammars"  # in the home of whoever runs plait
MAX_BYTES = 256 << 20  # of all entries under the folder, for all tokenizers together
SWEEP_SHARE = 1 / 16  # of them, that a process writes before it looks at what others wrote
KEPT_SHARE = 7 / 8  # of them, once the oldest were dropped
BLOCK_BYTES = 4096  # what files take is counted in these
TOUCH_S = 3600.0  # an entry's time of use is this exact
STALE_S = 3600.0  # after which a file that was never finished is dropped
LINGER_S = 0.1  # that entries wait for others, so that few threads are started
MAX_PENDING = 2000  # entries that wait; more are not kept

_CHECK_BYTES = 32
_PART = ".part"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DiskFolder:
    """The entries of one folder of a disk cache."""

    cache: DiskCache
    name: str

    def get(self, entry: str) -> memoryview | None:
        """Give the content of an entry; None if it is not there or not as it was written."""
        return self.cache.get(f"{self.name}/{entry}")

    def put(self, entry: str, content: bytes) -> None:
        """Keep an entry; it is written soon."""
        self.cache.put(f"{self.name}/{entry}", content)


class DiskCache:
    """A cache in files under `root`, those least recently used dropped first. Thread-safe.

    An entry is one file, renamed into place whole; it begins with a checksum of its name and
    content, so a damaged one is a miss. Whatever the disk refuses is a miss too; the first time
    that it refuses a write, writing ends for this process, with one warning. What is not
    written when the process ends is lost: who closes flushes, with a bound.
    """

    def __init__(self, root: Path, max_bytes: int = MAX_BYTES) -> None:
        self.root = root
        self._max_bytes = max_bytes
        self._num_free = 0  # bytes that may be written before the next sweep
        self._pending: dict[str, bytes] = {}
        self._lock = threading.Lock()  # of what is pending, and of the thread
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_writing = True

    def folder(self, name: str) -> DiskFolder:
        """Give the entries of one folder."""
        return DiskFolder(self, name)

    def get(self, name: str) -> memoryview | None:
        """Give the content of an entry, None if it is not there or not as it was written."""
        path = f"{self.root}/{name}"
        try:
            with open(path, "rb", buffering=0) as file:
                data = file.read()
                used_s = os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        content = memoryview(data)[_CHECK_BYTES:]
        if data[:_CHECK_BYTES] != _check(name, content):
            return None
        if time.time() - used_s > TOUCH_S:
            with contextlib.suppress(OSError):
                os.utime(path)
        return content

    def put(self, name: str, content: bytes) -> None:
        """Keep an entry under a name of one folder and one file; it is written soon."""
        with self._lock:
            if not self._is_writing or len(self._pending) >= MAX_PENDING:
                return
            self._pending[name] = content
            if self._thread is None:
                self._start_thread()

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until all that was put is written, or refused; at most `timeout_s`."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            self._hurry.set()
            thread.join(timeout_s)

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._write_all, name="plait-grammar-disk", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # too many threads, or the process ends
            self._is_writing = False
        else:
            self._thread = thread

    def _write_all(self) -> None:
        self._hurry.wait(LINGER_S)
        while (entry := self._next()) is not None:
            try:
                self._write(*entry)
            except FileNotFoundError:
                pass  # another process swept the folder away in between
            except OSError as e:
                self._stop()
                _log.warning("grammars are no longer kept in %s: %s", self.root, e)

    def _next(self) -> tuple[str, bytes] | None:
        with self._lock:
            if not self._pending:
                self._thread = None
                self._hurry.clear()
                return None
            name = next(iter(self._pending))
            return name, self._pending.pop(name)

    def _stop(self) -> None:
        with self._lock:
            self._is_writing = False
            self._pending.clear()

    def _write(self, name: str, content: bytes) -> None:
        size = _size_on_disk(_CHECK_BYTES + len(content))
        if size > self._max_bytes // 2:
            return
        if size > self._num_free:
            self._num_free = max(size, int(self._max_bytes * SWEEP_SHARE))
            self._sweep(self._num_free)
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}-{secrets.token_hex(8)}{_PART}")
        try:
            with part.open("xb") as file:
                file.write(_check(name, content))
                file.write(content)
            part.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()
            raise
        self._num_free -= size

    def _sweep(self, num_needed: int) -> None:
        """Drop the oldest entries where fewer than `num_needed` bytes are free."""
        entries = sorted(self._entries())
        total = num_needed + sum(size for _, size, _ in entries)
        if total <= self._max_bytes:
            return
        for _, size, path in entries:
            if total <= self._max_bytes * KEPT_SHARE:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size
        for folder in self._folders():
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # refused where something is left

    def _entries(self) -> Iterator[tuple[float, int, str]]:
        """Give when each was used last, its size and its path; drop what was never finished."""
        stale_s = time.time() - STALE_S
        for folder in self._folders():
            with contextlib.suppress(OSError), os.scandir(folder) as files:
                yield from filter(None, (_entry(file, stale_s) for file in files))

    def _folders(self) -> list[str]:
        try:
            with os.scandir(self.root) as found:
                return [one.path for one in found if one.is_dir(follow_symlinks=False)]
        except FileNotFoundError:  # the first entry of all
            return []


def _entry(file: os.DirEntry[str], stale_s: float) -> tuple[float, int, str] | None:
    """Give one of the entries; drop a file that was begun before `stale_s` and never finished."""
    found = file.stat(follow_symlinks=False)
    if file.name.endswith(_PART) and found.st_mtime < stale_s:
        os.unlink(file.path)
        return None
    return found.st_mtime, _size_on_disk(found.st_size), file.path


def _check(name: str, content: bytes | memoryview) -> bytes:
    check = hashlib.sha256(name.encode())
    check.update(content)
    return check.digest()


def _size_on_disk(size: int) -> int:
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES
