"""The folder where pulled models live: `models/<name>/` under $PLAIT_HOME.

A pulled model's folder holds a record, plait.json, its weights (model.gguf, or Hugging Face's
files), and the tokenizer's files. It is renamed into place whole, so that it is there or not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import ModelLoadError
from .json_file import read_json
from .weights import RECORD_NAME

DEFAULT_MODEL = "smollm2"


def default_home() -> Path:
    """Give the store's folder: $PLAIT_HOME, else ~/.cache/plait."""
    home = os.environ.get("PLAIT_HOME")
    return Path(home) if home else Path.home() / ".cache" / "plait"


@dataclass(frozen=True, slots=True)
class Record:
    """What plait.json says: where a model came from, and the sizes it must have.

    `digest` is the SHA-256 of the weights, which starts the cache's key.
    """

    source: str
    digest: str
    files: Mapping[str, int]  # name -> bytes


@dataclass(frozen=True, slots=True)
class StoredModel:
    """One model in the store."""

    name: str
    path: Path
    size_bytes: int
    source: str


class Store:
    """The pulled models under one home folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "models"

    def models(self) -> tuple[StoredModel, ...]:
        """List the models that are whole, by name."""
        found = (self.find(path.name) for path in sorted(self.folder.glob("*")))
        return tuple(model for model in found if model is not None)

    def find(self, name: str) -> StoredModel | None:
        """Give a pulled model, None if it is not there or not whole."""
        folder = self.folder / name
        if not is_name(name) or not (folder / RECORD_NAME).is_file():
            return None
        record = read_record(folder)
        if record is None or any(_size(folder / one) != size for one, size in record.files.items()):
            return None
        return StoredModel(name, folder, sum(record.files.values()), record.source)

    def resolve(self, name_or_path: str) -> Path:
        """Find a model: a pulled name, a GGUF file, or a Hugging Face folder.

        A pulled name comes before a path; write `./name` for a folder of that name. The path
        is good for `open_weights` and `load_tokenizer`.

        Raises: ModelLoadError, saying what is there and what to run.
        """
        model = self.find(name_or_path)
        if model is not None:
            return model.path
        path = Path(name_or_path).expanduser()
        if path.is_file():
            return path
        if path.is_dir():
            return _checked_folder(path)
        raise ModelLoadError(self._missing(name_or_path))

    def _missing(self, name: str) -> str:
        pulled = ", ".join(model.name for model in self.models()) or "none"
        advice = f"run `plait pull {DEFAULT_MODEL}`"
        if name != DEFAULT_MODEL:
            advice += ", or give a GGUF file or a Hugging Face folder"
        return f"no model {name!r} in {self.home} (pulled: {pulled}); {advice}"


def is_name(text: str) -> bool:
    """Tell whether `text` can name a model in the store: one plain path component."""
    return bool(text) and Path(text).name == text and not text.startswith(".")


def read_record(folder: Path) -> Record | None:
    """Read a folder's plait.json, None if it is damaged."""
    try:
        data = read_json(folder / RECORD_NAME)
    except ModelLoadError:
        return None
    source, digest, files = data.get("source"), data.get("digest"), data.get("files")
    if not isinstance(source, str) or not isinstance(digest, str) or not isinstance(files, dict):
        return None
    return Record(source, digest, files)


def write_record(folder: Path, record: Record) -> None:
    """Write a folder's plait.json."""
    (folder / RECORD_NAME).write_text(json.dumps(asdict(record), indent=1) + "\n", "utf-8")


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _checked_folder(path: Path) -> Path:
    if (path / "config.json").is_file() or (path / RECORD_NAME).is_file():
        return path
    ggufs = sorted(one.name for one in path.glob("*.gguf"))
    if ggufs:
        raise ModelLoadError(f"{path}: a folder; name the GGUF file in it: {', '.join(ggufs)}")
    raise ModelLoadError(
        f"{path}: no config.json, so no Hugging Face model folder; give one, or a GGUF file"
    )
