"""An append-only record of what the nodes of runs gave: to go on after a kill, and to replay.

A file of lines, each `crc32 json`. The first is the header; "run" lines say from which seed and
on which model runs began, "done" lines what one node gave, under the digest of all that its value
follows from (see journaled.py). A line that a crash has torn is cut off when the file is opened.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Annotated, BinaryIO, Final, TypeAlias

import msgspec

from ..lang.errors import JournalError
from .backend import Done, GenTokens, NodeMeta

VERSION: Final = 1
_MAX_SHOWN: Final = 200  # bytes


class _Header(msgspec.Struct, tag="journal", forbid_unknown_fields=True):
    version: Annotated[int, msgspec.Meta(ge=1)]


class RunRecord(msgspec.Struct, tag="run", frozen=True):
    """How runs on this journal draw, and on which model."""

    program: str
    seed: int
    model: str
    model_digest: str


class DoneRecord(msgspec.Struct, tag="done", frozen=True, omit_defaults=True):
    """What one node gave."""

    key: str
    text: str
    meta: NodeMeta = NodeMeta()
    value: str | None = None
    tokens: GenTokens | None = None

    def done(self, node: int) -> Done:
        """Give it as the outcome of a node of a new run."""
        return Done(node, self.text, self.meta, self.value, self.tokens)


_Record: TypeAlias = _Header | RunRecord | DoneRecord


@dataclass(slots=True)
class JournalStats:
    """How many outcomes came from the journal, and how many were added to it."""

    num_known: int = 0
    num_added: int = 0


class Journal:
    """A journal file, open. One writer at a time; thread-safe; close it, or use `with`.

    Records stay on disk: in memory is a place in the file by key. With `is_replay` nothing is
    written, and what is not in the journal fails in place of running.

    Raises: JournalError for a file that is in use, is no journal, or of another version.
    """

    def __init__(self, path: str | os.PathLike[str], *, is_replay: bool = False) -> None:
        self.path = Path(path)
        self.is_replay = is_replay
        self.stats = JournalStats()
        self._lock = threading.Lock()
        self._places: dict[str, tuple[int, int]] = {}  # key -> offset and length of its line
        self._last_run: RunRecord | None = None
        self._file = self._open()
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    @property
    def last_run(self) -> RunRecord | None:
        """Give how the last run on this journal began."""
        return self._last_run

    def begin(self, run: RunRecord) -> None:
        """Note how a run begins, unless the last one began in the same way."""
        with self._lock:
            if not self.is_replay and run != self._last_run:
                self._last_run = run
                self._append(run)

    def get(self, key: str) -> DoneRecord | None:
        """Give what was recorded under `key`."""
        with self._lock:
            place = self._places.get(key)
            if place is None:
                return None
            offset, length = place
            record = _decode(os.pread(self._file.fileno(), length, offset))
        if not isinstance(record, DoneRecord) or record.key != key:
            raise self._error("was changed while it was open")
        self.stats.num_known += 1
        return record

    def add(self, record: DoneRecord) -> None:
        """Append what a node gave; it outlives a kill of this process from here on."""
        with self._lock:
            if record.key not in self._places and not self._file.closed:
                self._places[record.key] = self._append(record)
                self.stats.num_added += 1

    def __len__(self) -> int:
        return len(self._places)

    def close(self) -> None:
        """Write all to the disk, and let others use the file. Idempotent."""
        with self._lock:
            if not self._file.closed:
                if not self.is_replay:
                    os.fsync(self._file.fileno())
                self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> BinaryIO:
        try:
            if self.is_replay:
                return open(self.path, "rb")
            # Made if it is not there, never emptied.
            file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
        except OSError as error:
            raise self._error(f"cannot be opened: {error.strerror}") from error
        try:
            _lock(file)
        except OSError as error:
            file.close()
            raise self._error(
                "is in use by another run; wait for it, or give both what plait.journal(path) opens"
            ) from error
        return file

    def _read(self) -> None:
        end = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break  # a crash tore it
            self._take(line, end)
            end += len(line)
        if end == 0 and not self._header().startswith(line := self._rest(0)):
            raise self._error(f"is not a journal, it begins with {line[:20]!r}; pass a new file")
        if self.is_replay:
            return
        self._file.truncate(end)
        self._file.seek(end)
        if end == 0:
            self._file.write(self._header())
            self._file.flush()

    def _take(self, line: bytes, offset: int) -> None:
        record = _decode(line)
        if offset == 0:
            self._check_header(record)
        match record:
            case RunRecord():
                self._last_run = record
            case DoneRecord():
                self._places[record.key] = offset, len(line)
            case _:  # the header, or damaged: its node runs again
                pass

    def _header(self) -> bytes:
        return _line(_Header(VERSION))

    def _rest(self, offset: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(_MAX_SHOWN)

    def _check_header(self, record: object) -> None:
        if not isinstance(record, _Header):
            raise self._error("is not a journal; pass the path of a new file")
        if record.version != VERSION:
            raise self._error(
                f"has version {record.version}, and this plait reads version {VERSION}"
            )

    def _append(self, record: RunRecord | DoneRecord) -> tuple[int, int]:
        line = _line(record)
        offset = self._file.tell()
        self._file.write(line)
        self._file.flush()
        return offset, len(line)

    def _error(self, message: str) -> JournalError:
        return JournalError(f"the journal {self.path} {message}")


@contextmanager
def opened(journal: Journal | str | os.PathLike[str]) -> Iterator[Journal]:
    """Give a journal that is open; one that was opened for this is closed at the end."""
    if isinstance(journal, Journal):
        yield journal
        return
    with Journal(journal) as own:
        yield own


def _line(record: msgspec.Struct) -> bytes:
    # The library's own JSON writes null for an infinite score.
    data = json.dumps(msgspec.to_builtins(record), separators=(",", ":"), ensure_ascii=False)
    return b"%08x %b\n" % (zlib.crc32(data.encode()), data.encode())


def _decode(line: bytes) -> _Record | None:
    """Give the record of a line, None for a damaged one."""
    checksum, _, data = line.rstrip(b"\n").partition(b" ")
    if checksum != b"%08x" % zlib.crc32(data):
        return None
    try:
        return msgspec.convert(json.loads(data), _Record)
    except ValueError:
        return None


def _lock(file: BinaryIO) -> None:
    """Take the file for this writer alone. Raises: OSError if another has it."""
    import fcntl  # POSIX alone has it, and journals alone need it

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
