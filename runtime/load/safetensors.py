"""Weights from a Hugging Face folder: config.json and safetensors, whole or sharded."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated, NoReturn, TypeAlias

import msgspec
import numpy as np

from ..errors import ModelLoadError
from .blocks import Blocks, blocks_of
from .json_file import read_json
from .quants import BF16, F16, F32, Bytes, Floats, dequantize

_WHOLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_DTYPES = {"F32": F32, "F16": F16, "BF16": BF16}  # to GGML's numbers
_SIZES = {F32: 4, F16: 2, BF16: 2}  # bytes
# The format's own limit on a header; a longer one is damage.
_MAX_HEADER_BYTES = 100_000_000
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_LFS_POINTER = b"version https://git-lfs"


@dataclass(frozen=True, slots=True)
class _Record:
    """Where a tensor lies."""

    path: Path
    kind: int  # GGML's number of the format
    shape: tuple[int, ...]
    offset: int  # bytes from the start of the file
    num_bytes: int

    def read(self) -> Bytes:
        """Read the bytes, a fresh copy."""
        try:
            return np.fromfile(self.path, np.uint8, self.num_bytes, offset=self.offset)
        except OSError as e:
            raise ModelLoadError(f"{self.path}: cannot be read: {e.strerror}") from e


class SafetensorsWeights:
    """The weights of a Hugging Face folder, each tensor accounted for when it opens.

    Of several copies only one is read: `model.safetensors.index.json` and `model.safetensors`
    together are refused, other *.safetensors files in the folder too.
    """

    def __init__(self, folder: Path, digest: str | None = None) -> None:
        self.folder = folder
        self.config: Mapping[str, object] = read_json(folder / "config.json")
        self._records = _locate(folder)
        self.digest = digest or self._cheap_digest()

    def names(self) -> Sequence[str]:
        """List every tensor."""
        return list(self._records)

    def tensor(self, name: str) -> Floats:
        """Give a tensor as fp32, a fresh copy.

        Raises: ModelLoadError if the folder has no such tensor.
        """
        record = self._record(name)
        return dequantize(record.read(), record.kind, record.shape)

    def blocks(self, name: str, kinds: Collection[int]) -> Blocks:
        """Give a matrix without decoding it if its format is one of `kinds`, else as fp32.

        Raises: ModelLoadError if the folder has no such tensor.
        """
        record = self._record(name)
        if len(record.shape) != 2 or not record.shape[0]:  # no matrix, as its reader will see
            return Blocks(record.kind, record.read(), record.shape)
        if record.kind not in kinds:
            return blocks_of(self.tensor(name))
        return Blocks(record.kind, record.read().reshape(record.shape[0], -1), record.shape)

    def _record(self, name: str) -> _Record:
        if name not in self._records:
            raise ModelLoadError(f"{self.folder}: tensor {name} is missing")
        return self._records[name]

    def close(self) -> None:
        """Nothing to let go: a shard is open only while a tensor is read."""

    def _cheap_digest(self) -> str:
        """Name the content by config, sizes and headers; data bytes are not read."""
        state = hashlib.sha256((self.folder / "config.json").read_bytes())
        for path in sorted({record.path for record in self._records.values()}):
            state.update(f"{path.name} {path.stat().st_size}".encode())
            state.update(_header_bytes(path))
        return f"safetensors-{state.hexdigest()}"


class _Entry(msgspec.Struct):
    """What a header says of a tensor."""

    dtype: str
    shape: tuple[_Count, ...]
    data_offsets: tuple[_Count, _Count]


def _locate(folder: Path) -> dict[str, _Record]:
    """Find every tensor, after checking all files."""
    whole, index = folder / _WHOLE, folder / _INDEX
    present = {path.name for path in folder.glob("*.safetensors")}
    if index.exists():
        located = _from_index(folder, index)
    elif whole.exists():
        located = _read_records(whole)
    else:
        _refuse_missing(folder, present)
    stray = present - {record.path.name for record in located.values()}
    if stray:
        raise ModelLoadError(
            f"{folder}: {', '.join(sorted(stray))} is not part of the model that "
            f"{_INDEX if index.exists() else _WHOLE} describes; move it out of the folder"
        )
    return located


def _refuse_missing(folder: Path, present: set[str]) -> NoReturn:
    if present:
        raise ModelLoadError(f"{folder}: has {', '.join(sorted(present))} and no {_INDEX}")
    if any(folder.glob("*.bin")):
        raise ModelLoadError(
            f"{folder}: only *.bin weights, which are pickles and never loaded; "
            "convert them to safetensors"
        )
    raise ModelLoadError(f"{folder}: no {_WHOLE} and no {_INDEX}")


def _from_index(folder: Path, index: Path) -> dict[str, _Record]:
    table = read_json(index).get("weight_map")
    if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
        raise ModelLoadError(f"{index}: no weight_map from tensor to file")
    shards = {shard: _read_shard(folder, index, shard) for shard in sorted(set(table.values()))}
    for name, shard in table.items():
        if name not in shards[shard]:
            raise ModelLoadError(f"{folder / shard}: has no tensor {name}; {_INDEX} says it has")
    for shard, found in shards.items():
        for name in found:
            if table.get(name) != shard:
                raise ModelLoadError(
                    f"{folder / shard}: has tensor {name}, which {_INDEX} "
                    f"places in {table.get(name, 'no file')}"
                )
    return {name: shards[shard][name] for name, shard in table.items()}


def _read_shard(folder: Path, index: Path, shard: str) -> dict[str, _Record]:
    if Path(shard).name != shard:
        raise ModelLoadError(f"{index}: {shard!r} is not a file name in the folder")
    if not (folder / shard).exists():
        raise ModelLoadError(f"{folder / shard}: missing, and {_INDEX} needs it; fetch it again")
    return _read_records(folder / shard)


def _header_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        start = file.read(24)
        if start.startswith(_LFS_POINTER[:24]):
            raise ModelLoadError(f"{path}: a Git LFS pointer, not the weights; run `git lfs pull`")
        if len(start) < 8:
            raise ModelLoadError(f"{path}: {len(start)} bytes, no safetensors file; fetch it again")
        (length,) = struct.unpack("<Q", start[:8])
        if length > min(_MAX_HEADER_BYTES, path.stat().st_size - 8):
            raise ModelLoadError(
                f"{path}: its header claims {length} bytes and the file has "
                f"{path.stat().st_size}; it is damaged, fetch it again"
            )
        file.seek(8)
        return file.read(length)


def _read_records(path: Path) -> dict[str, _Record]:
    """Find a file's tensors after checking that all of its bytes are there."""
    header_bytes = _header_bytes(path)
    start = 8 + len(header_bytes)
    try:
        header = msgspec.json.decode(header_bytes, type=dict[str, msgspec.Raw])
        header.pop("__metadata__", None)
        entries = {name: msgspec.json.decode(raw, type=_Entry) for name, raw in header.items()}
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as e:
        raise ModelLoadError(f"{path}: its header is damaged ({e}); fetch it again") from e
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        if entry.data_offsets[0] != end or entry.data_offsets[1] < end:
            raise ModelLoadError(
                f"{path}: tensor {name} does not begin where the one before it ends; "
                "the file is damaged, fetch it again"
            )
        end = entry.data_offsets[1]
    if path.stat().st_size != start + end:
        last = max(entries, key=lambda name: entries[name].data_offsets, default="none")
        raise ModelLoadError(
            f"{path}: has {path.stat().st_size} bytes and its last tensor {last} ends at "
            f"{start + end}; the file is damaged or was cut short, fetch it again"
        )
    records: dict[str, _Record] = {}
    for name, entry in entries.items():
        if entry.dtype not in _DTYPES:
            raise ModelLoadError(
                f"{path}: tensor {name} is {entry.dtype}; supported are {', '.join(_DTYPES)}"
            )
        kind, size = _DTYPES[entry.dtype], entry.data_offsets[1] - entry.data_offsets[0]
        if size != prod(entry.shape) * _SIZES[kind]:
            raise ModelLoadError(
                f"{path}: tensor {name} of shape {entry.shape} has {size} bytes; "
                "its header is damaged, fetch it again"
            )
        records[name] = _Record(path, kind, entry.shape, start + entry.data_offsets[0], size)
    return records
