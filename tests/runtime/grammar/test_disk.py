"""The disk cache: whatever happens to its files, an entry is what was put, or not there."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from plait.runtime.grammar import disk as disk_module
from plait.runtime.grammar.disk import BLOCK_BYTES, STALE_S, TOUCH_S, DiskCache

WRITER = """
import sys; from pathlib import Path
from plait.runtime.grammar.disk import DiskCache
disk = DiskCache(Path(sys.argv[1]))
for number in range(200):
    disk.put(f"a/{number}", bytes([number]) * 5000)
disk.flush()
"""


def read(disk: DiskCache, name: str) -> bytes | None:
    content = disk.get(name)
    return None if content is None else bytes(content)


def write(root: Path, **entries: bytes) -> None:
    disk = DiskCache(root)
    for name, content in entries.items():
        disk.put(f"a/{name}", content)
    disk.flush()


def test_an_entry_is_there_for_the_next_process(tmp_path: Path) -> None:
    write(tmp_path / "new" / "folder", x=b"abc", empty=b"")
    disk = DiskCache(tmp_path / "new" / "folder")
    assert read(disk, "a/x") == b"abc"
    assert read(disk, "a/empty") == b""
    assert read(disk, "a/y") is None
    assert read(disk, "b/x") is None


def test_a_later_entry_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    write(tmp_path, x=b"abc")
    write(tmp_path, x=b"d")
    assert read(DiskCache(tmp_path), "a/x") == b"d"


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 40, 99])
def test_a_file_that_was_cut_is_a_miss(size: int, tmp_path: Path) -> None:
    write(tmp_path, x=bytes(range(68)))
    path = tmp_path / "a" / "x"
    path.write_bytes(path.read_bytes()[:size])
    assert read(DiskCache(tmp_path), "a/x") is None


@pytest.mark.parametrize("place", [0, 31, 32, 50, -1])
def test_a_changed_byte_is_a_miss_and_the_next_put_repairs_it(place: int, tmp_path: Path) -> None:
    write(tmp_path, x=bytes(range(68)))
    path = tmp_path / "a" / "x"
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    assert read(DiskCache(tmp_path), "a/x") is None
    write(tmp_path, x=b"again")
    assert read(DiskCache(tmp_path), "a/x") == b"again"


def test_a_file_under_another_name_is_a_miss(tmp_path: Path) -> None:
    write(tmp_path, x=b"abc")
    (tmp_path / "a" / "x").rename(tmp_path / "a" / "y")
    assert read(DiskCache(tmp_path), "a/y") is None


def test_processes_may_write_the_same_entries_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command) for _ in range(2)]
    disk = DiskCache(tmp_path)
    while any(writer.poll() is None for writer in writers):
        for number in range(0, 200, 7):
            found = read(disk, f"a/{number}")
            assert found in (None, bytes([number]) * 5000)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert all(read(disk, f"a/{number}") is not None for number in range(200))


def test_the_entries_used_last_are_kept(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path, max_bytes=64 * BLOCK_BYTES)
    for number in range(64):
        disk.put(f"a/{number}", b"x")
    disk.flush()
    old_s = time.time() - 2 * TOUCH_S
    for number in range(64):
        if (tmp_path / "a" / str(number)).exists():
            os.utime(tmp_path / "a" / str(number), (old_s + number, old_s + number))
    kept = [number for number in range(64) if (tmp_path / "a" / str(number)).exists()]
    assert read(disk, f"a/{kept[0]}") == b"x"  # used: no longer the oldest
    for number in range(64, 80):
        disk.put(f"b/{number}", b"x")
    disk.flush()
    assert read(disk, f"a/{kept[0]}") == b"x"
    assert read(disk, f"a/{kept[1]}") is None
    assert read(disk, "b/79") == b"x"
    assert len(list(tmp_path.glob("*/*"))) <= 64


def test_folders_of_which_nothing_is_left_go_too(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path, max_bytes=16 * BLOCK_BYTES)
    disk.put("old/x", b"x")
    disk.flush()
    os.utime(tmp_path / "old" / "x", (1, 1))
    for number in range(40):
        disk.put(f"new/{number}", b"x")
    disk.flush()
    assert [folder.name for folder in tmp_path.iterdir()] == ["new"]


def test_an_entry_of_more_than_half_the_cache_is_not_kept(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path, max_bytes=16 * BLOCK_BYTES)
    disk.put("a/large", bytes(9 * BLOCK_BYTES))
    disk.put("a/small", bytes(7 * BLOCK_BYTES))
    disk.flush()
    assert read(disk, "a/large") is None
    assert read(disk, "a/small") is not None


def test_what_a_crash_left_is_not_read_and_goes_in_time(tmp_path: Path) -> None:
    write(tmp_path, x=b"abc")
    fresh, stale = tmp_path / "a" / "y-0.part", tmp_path / "a" / "z-0.part"
    for path in (fresh, stale):
        path.write_bytes(b"half")
    old_s = time.time() - 2 * STALE_S
    os.utime(stale, (old_s, old_s))
    write(tmp_path, more=b"x")
    assert fresh.exists()
    assert not stale.exists()
    assert read(DiskCache(tmp_path), "a/x") == b"abc"


def test_a_folder_that_cannot_be_made_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    disk = DiskCache(tmp_path / "home")
    with caplog.at_level(logging.WARNING):
        for name in ("a/x", "a/y", "b/z"):
            disk.put(name, b"abc")
            disk.flush()
            assert disk.get(name) is None
    (message,) = [record.getMessage() for record in caplog.records]
    assert "home" in message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, x=b"abc")
    (tmp_path / "a").chmod(0o500)
    disk = DiskCache(tmp_path)
    try:
        disk.put("a/y", b"abc")
        disk.flush()
        assert read(disk, "a/x") == b"abc"
        assert read(disk, "a/y") is None
    finally:
        (tmp_path / "a").chmod(0o700)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), PermissionError(13, "")])
def test_a_disk_that_refuses_is_one_warning_and_leaves_nothing(
    error: OSError,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write(tmp_path, x=b"abc")
    os.utime(tmp_path / "a" / "x", (1, 1))

    def refuse(*args: object) -> None:
        raise error

    monkeypatch.setattr(Path, "replace", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    disk = DiskCache(tmp_path)
    for number in range(5):
        disk.put(f"a/{number}", b"abc")
        disk.flush()
    assert len(caplog.records) == 1
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["x"]
    assert read(disk, "a/x") == b"abc"


def test_a_folder_swept_away_in_between_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = DiskCache(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", lambda *args, **options: None)
        disk.put("a/x", b"lost")
        disk.flush()
    disk.put("a/y", b"abc")
    disk.flush()
    assert read(disk, "a/x") is None
    assert read(disk, "a/y") == b"abc"
    assert not caplog.records


def test_more_than_can_wait_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_module, "MAX_PENDING", 3)
    monkeypatch.setattr(disk_module, "LINGER_S", 60.0)
    disk = DiskCache(tmp_path)
    for number in range(5):
        disk.put(f"a/{number}", b"abc")
    disk.flush()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["0", "1", "2"]


def test_who_flushes_waits_no_longer_than_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write = threading.Event()
    write = DiskCache._write

    def slowly(cache: DiskCache, name: str, content: bytes) -> None:
        assert may_write.wait(10)
        write(cache, name, content)

    monkeypatch.setattr(DiskCache, "_write", slowly)
    disk = DiskCache(tmp_path)
    disk.put("a/x", b"abc")
    disk.flush(0.01)
    assert disk.get("a/x") is None
    may_write.set()
    disk.flush()
    assert read(disk, "a/x") == b"abc"


def test_without_threads_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    disk = DiskCache(tmp_path)
    disk.put("a/x", b"abc")
    disk.flush()
    assert read(disk, "a/x") is None
