"""Folders of killed workers are removed, all others are left alone."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest

from plait.runtime.serve import endpoint
from plait.runtime.serve.stale import STALE_S, remove_stale

LOCK = "x.lock"


def make(parent: Path, name: str, *, age_s: float | None = STALE_S * 2) -> Path:
    """Make a folder; its lock has this age, None for no lock."""
    folder = parent / name
    folder.mkdir()
    if age_s is not None:
        (folder / LOCK).touch()
        then_s = time.time() - age_s
        os.utime(folder / LOCK, (then_s, then_s))
    return folder


def test_a_folder_whose_lock_nobody_holds_is_removed(tmp_path: Path) -> None:
    stale = make(tmp_path, "plait-stale")
    (stale / "plait.sock").touch()
    remove_stale(tmp_path, "plait-", LOCK)
    assert not stale.exists()


def test_folders_in_use_or_just_made_or_of_others_are_left_alone(tmp_path: Path) -> None:
    held = make(tmp_path, "plait-held")
    kept = [
        held,
        make(tmp_path, "plait-starting", age_s=None),
        make(tmp_path, "plait-young", age_s=0),
        make(tmp_path, "other"),
    ]
    (tmp_path / "plait-link").symlink_to(kept[-1])
    with (held / LOCK).open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_stale(tmp_path, "plait-", LOCK)
    assert all(folder.exists() for folder in kept)
    assert (kept[-1] / LOCK).exists()


def test_the_next_private_folder_removes_those_of_killed_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / "plait-left"
    left.mkdir()
    lock = left / f"{endpoint.SOCKET_NAME}.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    folder = endpoint.private_folder()
    assert [*folder.parent.glob("plait-*")] == [folder]
    folder.rmdir()
