"""One view of a model's weights, whatever kind of file they lie in."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from ..errors import ModelLoadError
from .blocks import Blocks, blocks_of
from .gguf import GgufFile
from .gguf_config import read_config
from .gguf_names import ROPE_FACTORS, hugging_face_name, is_permuted, unpermute
from .quants import Floats, dequantize
from .safetensors import SafetensorsWeights

# What a pulled model's folder holds beside Hugging Face's own files.
GGUF_NAME = "model.gguf"
RECORD_NAME = "plait.json"


class Weights(Protocol):
    """A model's weights under Hugging Face's names, in its row order, and its config."""

    @property
    def config(self) -> Mapping[str, object]:
        """The config, in the keys of Hugging Face's config.json."""
        ...

    @property
    def digest(self) -> str:
        """A name of the content: from the pull's SHA-256, else a cheap one over the headers."""
        ...

    def names(self) -> Sequence[str]:
        """List every tensor."""
        ...

    def tensor(self, name: str) -> Floats:
        """Give a tensor as fp32, a fresh copy."""
        ...

    def blocks(self, name: str, kinds: Collection[int]) -> Blocks:
        """Give a matrix without decoding it if its format is one of `kinds`, else as fp32."""
        ...

    def close(self) -> None:
        """Let go of the files."""
        ...


class GgufWeights:
    """The weights of a GGUF file."""

    def __init__(self, path: Path, digest: str | None = None) -> None:
        self._file = GgufFile(path)
        try:
            self.config: Mapping[str, object] = read_config(self._file)
            self._architecture = str(self._file.metadata["general.architecture"])
            self._names = self._map_names()
        except BaseException:
            self._file.close()
            raise
        self.digest = digest or self._file.digest

    def _map_names(self) -> dict[str, str]:
        try:
            return {
                hugging_face_name(name): name for name in self._file.tensors if name != ROPE_FACTORS
            }
        except ModelLoadError as e:
            raise ModelLoadError(f"{self._file.path}: {e}") from e

    def names(self) -> Sequence[str]:
        """List every tensor."""
        return list(self._names)

    def tensor(self, name: str) -> Floats:
        """Give a tensor as fp32, a fresh copy.

        Raises: ModelLoadError if the file has no such tensor.
        """
        if name not in self._names:
            raise ModelLoadError(f"{self._file.path}: tensor {name} is missing")
        inner = self._names[name]
        record = self._file.tensors[inner]
        values = dequantize(self._file.raw(inner), record.kind, record.shape)
        if is_permuted(self._architecture, inner):
            values = unpermute(values, self._num_heads(inner, len(values)))
        return values

    def blocks(self, name: str, kinds: Collection[int]) -> Blocks:
        """Give a matrix without decoding it if its format is one of `kinds`, else as fp32.

        Raises: ModelLoadError if the file has no such tensor.
        """
        inner = self._names.get(name)
        if inner is None or self._file.tensors[inner].kind not in kinds:
            return blocks_of(self.tensor(name))
        record = self._file.tensors[inner]
        raw = self._file.raw(inner).reshape(record.shape[0], -1)
        if is_permuted(self._architecture, inner):
            raw = unpermute(raw, self._num_heads(inner, len(raw)))
        return Blocks(record.kind, raw, record.shape)

    def _num_heads(self, inner: str, num_rows: int) -> int:
        head_dim = self.config["head_dim"]
        assert isinstance(head_dim, int)
        if num_rows % head_dim != 0 or head_dim % 2 != 0:
            raise ModelLoadError(
                f"{self._file.path}: tensor {inner} has {num_rows} rows, "
                f"not a multiple of the head size {head_dim}"
            )
        return num_rows // head_dim

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def open_weights(path: Path) -> Weights:
    """Open a GGUF file, a pulled model's folder, or a Hugging Face folder.

    Raises: ModelLoadError, naming the file and what is wrong with it.
    """
    if path.is_dir():
        digest = _recorded_digest(path)
        if (path / GGUF_NAME).exists():
            return GgufWeights(path / GGUF_NAME, digest)
        return SafetensorsWeights(path, digest)
    return GgufWeights(path)


@contextmanager
def opened(path: Path) -> Iterator[Weights]:
    """Open weights for the length of a block."""
    weights = open_weights(path)
    try:
        yield weights
    finally:
        weights.close()


def _recorded_digest(folder: Path) -> str | None:
    record = folder / RECORD_NAME
    if not record.exists():
        return None
    try:
        digest = json.loads(record.read_text("utf-8"))["digest"]
    except (ValueError, KeyError, TypeError) as e:
        raise ModelLoadError(f"{record}: damaged; remove {folder} and pull it again") from e
    return str(digest)
