"""An embedded runtime that cannot even be tried; tests/integration has those that start."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from plait.interpreter.backends.embedded import EmbeddedBackend
from plait.lang.errors import BackendUnavailable


def test_without_a_folder_for_its_socket_it_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("plait.interpreter.backends.embedded.private_folder", full)
    with pytest.raises(BackendUnavailable, match=r"No space left.*TMPDIR"):
        EmbeddedBackend()


def test_without_a_process_it_is_unavailable_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(BackendUnavailable, match="does not start"):
        EmbeddedBackend()
    assert [*tmp_path.iterdir()] == []
