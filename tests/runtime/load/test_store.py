"""The store finds whole models only, and says what to run when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.runtime.errors import ModelLoadError
from plait.runtime.load.store import Record, Store, default_home, write_record


def add(store: Store, name: str) -> Path:
    """Put a model of one file into the store."""
    folder = store.folder / name
    folder.mkdir(parents=True)
    (folder / "model.gguf").write_bytes(b"12345")
    write_record(folder, Record("somewhere", "d1", {"model.gguf": 5}))
    return folder


def test_home_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_HOME", "/x")
    assert default_home() == Path("/x")
    monkeypatch.delenv("PLAIT_HOME")
    assert default_home() == Path.home() / ".cache" / "plait"


def test_models_are_listed_by_name_with_size_and_source(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.models() == ()
    add(store, "b")
    add(store, "a")
    found = [(one.name, one.size_bytes, one.source) for one in store.models()]
    assert found == [("a", 5, "somewhere"), ("b", 5, "somewhere")]


def test_a_pulled_name_resolves_to_its_folder(tmp_path: Path) -> None:
    folder = add(Store(tmp_path), "a")
    assert Store(tmp_path).resolve("a") == folder


def test_a_model_with_a_short_file_or_a_damaged_record_is_not_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (add(store, "short") / "model.gguf").write_bytes(b"123")
    (add(store, "damaged") / "plait.json").write_text("{")
    assert store.models() == ()


def test_paths_resolve_to_themselves(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    (tmp_path / "m.gguf").touch()
    (tmp_path / "config.json").touch()
    assert store.resolve(str(tmp_path / "m.gguf")) == tmp_path / "m.gguf"
    assert store.resolve(str(tmp_path)) == tmp_path


def test_a_missing_model_says_what_is_there_and_what_to_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(ModelLoadError, match=r"'x'.*pulled: none.*run `plait pull smollm2`"):
        store.resolve("x")
    add(store, "mine")
    with pytest.raises(ModelLoadError, match="pulled: mine"):
        store.resolve("smollm2")


def test_a_folder_without_a_model_names_the_gguf_files_in_it(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"no config\.json"):
        Store(tmp_path).resolve(str(tmp_path))
    (tmp_path / "m.gguf").touch()
    with pytest.raises(ModelLoadError, match=r"name the GGUF file in it: m\.gguf"):
        Store(tmp_path).resolve(str(tmp_path))


@pytest.mark.parametrize("name", ["", "..", "../a", ".hidden", "a/b"])
def test_names_that_leave_the_folder_find_nothing(name: str, tmp_path: Path) -> None:
    assert Store(tmp_path).find(name) is None
