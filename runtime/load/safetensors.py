"""Weights from a Hugging Face folder: config.json and safetensors, whole or sharded."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import torch
from safetensors import SafetensorError, safe_open

from ..errors import ModelLoadError
from .blocks import Blocks, blocks_of
from .json_file import read_json

_WHOLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_DTYPES = ("F32", "F16", "BF16")
# The format's own limit on a header; a longer one is damage.
_MAX_HEADER_BYTES = 100_000_000
_LFS_POINTER = b"version https://git-lfs"


class SafetensorsWeights:
    """The weights of a Hugging Face folder, each tensor accounted for when it opens.

    Of several copies only one is read: `model.safetensors.index.json` and `model.safetensors`
    together are refused, other *.safetensors files in the folder too.
    """

    def __init__(self, folder: Path, digest: str | None = None) -> None:
        self.folder = folder
        self.config: Mapping[str, object] = read_json(folder / "config.json")
        self._shards = _locate(folder)
        self.digest = digest or self._cheap_digest()

    def names(self) -> Sequence[str]:
        """List every tensor."""
        return list(self._shards)

    def tensor(self, name: str) -> torch.Tensor:
        """Give a tensor as fp32, a fresh copy.

        Raises: ModelLoadError if the folder has no such tensor.
        """
        if name not in self._shards:
            raise ModelLoadError(f"{self.folder}: tensor {name} is missing")
        path = self._shards[name]
        try:
            with safe_open(path, framework="pt") as file:
                value: torch.Tensor = file.get_tensor(name)
        except SafetensorError as e:
            raise ModelLoadError(f"{path}: tensor {name} cannot be read: {e}") from e
        return value.to(torch.float32, copy=True)

    def blocks(self, name: str, kinds: Collection[int]) -> Blocks:
        """Give a matrix as fp32."""
        return blocks_of(self.tensor(name))

    def close(self) -> None:
        """Nothing to let go: a shard is open only while a tensor is read."""

    def _cheap_digest(self) -> str:
        """Name the content by config, sizes and headers; data bytes are not read."""
        state = hashlib.sha256((self.folder / "config.json").read_bytes())
        for path in sorted(set(self._shards.values())):
            state.update(f"{path.name} {path.stat().st_size}".encode())
            state.update(_header_bytes(path))
        return f"safetensors-{state.hexdigest()}"


def _locate(folder: Path) -> dict[str, Path]:
    """Map every tensor to the file that holds it, after checking all of them."""
    whole, index = folder / _WHOLE, folder / _INDEX
    present = {path.name for path in folder.glob("*.safetensors")}
    if index.exists():
        located = _from_index(folder, index)
    elif whole.exists():
        located = dict.fromkeys(_tensor_names(whole), whole)
    else:
        _refuse_missing(folder, present)
    stray = present - {path.name for path in located.values()}
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


def _from_index(folder: Path, index: Path) -> dict[str, Path]:
    table = read_json(index).get("weight_map")
    if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
        raise ModelLoadError(f"{index}: no weight_map from tensor to file")
    names = {shard: _shard_names(folder, index, shard) for shard in sorted(set(table.values()))}
    for name, shard in table.items():
        if name not in names[shard]:
            raise ModelLoadError(f"{folder / shard}: has no tensor {name}; {_INDEX} says it has")
    for shard, found in names.items():
        for name in found:
            if table.get(name) != shard:
                raise ModelLoadError(
                    f"{folder / shard}: has tensor {name}, which {_INDEX} "
                    f"places in {table.get(name, 'no file')}"
                )
    return {name: folder / shard for name, shard in table.items()}


def _shard_names(folder: Path, index: Path, shard: str) -> list[str]:
    if Path(shard).name != shard:
        raise ModelLoadError(f"{index}: {shard!r} is not a file name in the folder")
    if not (folder / shard).exists():
        raise ModelLoadError(f"{folder / shard}: missing, and {_INDEX} needs it; fetch it again")
    return _tensor_names(folder / shard)


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


def _tensor_names(path: Path) -> list[str]:
    """List a file's tensors after checking that all of its bytes are there."""
    try:
        header = json.loads(_header_bytes(path))
        records = {name: record for name, record in header.items() if name != "__metadata__"}
        ends = {name: int(record["data_offsets"][1]) for name, record in records.items()}
        dtypes = {name: str(record["dtype"]) for name, record in records.items()}
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as e:
        raise ModelLoadError(f"{path}: its header is damaged ({e!r}); fetch it again") from e
    expected = 8 + len(_header_bytes(path)) + max(ends.values(), default=0)
    if path.stat().st_size != expected:
        last = max(ends, key=lambda name: ends[name], default="none")
        raise ModelLoadError(
            f"{path}: has {path.stat().st_size} bytes and its last tensor {last} ends at "
            f"{expected}; the file is damaged or was cut short, fetch it again"
        )
    for name, dtype in dtypes.items():
        if dtype not in _DTYPES:
            raise ModelLoadError(
                f"{path}: tensor {name} is {dtype}; supported are {', '.join(_DTYPES)}"
            )
    return list(records)
