"""The compiled kernels are found, chosen, or their absence explained."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.kernels.native import Library, load_library, why_absent
from plait.kernels.native import library as module


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Load anew in each test, and leave to others what they had."""
    monkeypatch.delenv(module.CHOICE, raising=False)
    module._load.cache_clear()
    yield
    module._load.cache_clear()


def test_they_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.CHOICE, "off")
    assert load_library() is None
    assert why_absent() == "PLAIT_NATIVE=off says so"


def test_without_a_compiler_the_reason_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_find", lambda: None)
    assert load_library() is None
    assert "install g++, then plait again" in why_absent()


def test_a_damaged_file_is_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "_native.so"
    path.write_bytes(b"not a library")
    monkeypatch.setattr(module, "_find", lambda: path)
    assert load_library() is None
    assert "_native.so cannot be loaded" in why_absent()


def test_a_processor_that_this_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    if load_library() is None:
        pytest.skip(why_absent())
    module._load.cache_clear()
    monkeypatch.setenv(module.CHOICE, "vax")
    with pytest.raises(ValueError, match="PLAIT_NATIVE=vax: pass off, or what this machine is"):
        load_library()


def test_what_is_chosen_stays_chosen(library: Library) -> None:
    assert library.isa in ("avx512", "avxvnni", "avx2", "portable")
    assert not library.choose("vax")
