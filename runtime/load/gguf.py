"""Read a GGUF file's header, metadata and tensor table over a memory map.

Format: a header (magic, version, counts), key-value metadata, one record per tensor, then
aligned tensor data. Every length is checked against the file before it is used.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import ModelLoadError
from .quants import num_bytes

_MAX_DIMS = 4
_STRING, _ARRAY, _BOOL = 8, 9, 7
# Type code of a scalar -> its format.
_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i",
    6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_SAMPLE_BYTES = 256


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One record of the tensor table; `shape` is row-major, rows first."""

    name: str
    shape: tuple[int, ...]
    kind: int  # GGML's number of the quantisation
    offset: int  # bytes from the start of the file
    num_bytes: int


class _Cursor:
    """Reads little-endian values in order, and never past the end of the file."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path = path
        self.data = data
        self.size = len(data)
        self.at = 0

    def fail(self, problem: str) -> NoReturn:
        raise ModelLoadError(
            f"{self.path}: {problem}, at byte {self.at} of {self.size}; "
            "the file is damaged or was cut short, fetch it again"
        )

    def need(self, count: int, what: str) -> None:
        if count > self.size - self.at:
            left = self.size - self.at
            self.fail(f"{what} needs {count} bytes and the file has {left} left")

    def scalar(self, form: str, what: str) -> int | float | bool:
        self.need(struct.calcsize(form), what)
        value: int | float | bool = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def count(self, what: str, form: str = "<Q") -> int:
        return int(self.scalar(form, what))

    def string(self, what: str) -> str:
        length = self.count(what)
        self.need(length, what)
        raw = self.data[self.at : self.at + length]
        self.at += length
        # A token cut inside a character is legal in some files; keep its bytes apart.
        return raw.decode("utf-8", "surrogateescape")

    def value(self, kind: int, key: str) -> object:
        if kind == _STRING:
            return self.string(key)
        if kind == _ARRAY:
            return self.array(key)
        if kind not in _SCALARS:
            self.fail(f"{key} has type {kind}, which GGUF does not define")
        return self.scalar(_SCALARS[kind], key)

    def array(self, key: str) -> list[object]:
        kind = self.count(key, "<I")
        length = self.count(key)
        if kind in _SCALARS:
            form = f"<{length}{_SCALARS[kind][1]}"
            self.need(length * struct.calcsize(_SCALARS[kind]), key)
            values = list(struct.unpack_from(form, self.data, self.at))
            self.at += struct.calcsize(form)
            return values
        if kind != _STRING:
            self.fail(f"{key} is an array of type {kind}, which is not supported")
        self.need(length * 8, key)  # each string has at least its length
        return self.strings(length, key)

    def strings(self, length: int, key: str) -> list[object]:
        # The one hot loop: vocabularies have 10^5 strings, so it calls nothing of ours.
        out: list[object] = []
        data, at, size = self.data, self.at, self.size
        unpack = struct.Struct("<Q").unpack_from
        for _ in range(length):
            start = at + 8
            end = start + unpack(data, at)[0] if start <= size else size + 1
            if end > size:
                self.at = at
                self.fail(f"{key} ends after {len(out)} of its {length} strings")
            out.append(data[start:end].decode("utf-8", "surrogateescape"))
            at = end
        self.at = at
        return out


class GgufFile:
    """An open GGUF file: its metadata, its tensor table, and the tensors' raw bytes.

    Raises: ModelLoadError, naming the file, the byte and the field.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map = _map(path)
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def _read(self) -> None:
        cursor = _Cursor(self.path, self._map)
        self.version, num_tensors, num_keys = _header(cursor)
        self.metadata: Mapping[str, object] = _metadata(cursor, num_keys)
        split = self.metadata.get("split.count", 1)
        if split not in (0, 1):
            raise ModelLoadError(
                f"{self.path}: this is one part of a GGUF split into {split}; "
                "join them with `llama-gguf-split --merge` and load the result"
            )
        self.tensors: Mapping[str, GgufTensor] = _tensors(cursor, num_tensors, self.metadata)
        self._header_bytes = cursor.at

    @property
    def digest(self) -> str:
        """Name the content cheaply: size, header, and the first bytes of every tensor."""
        state = hashlib.sha256(str(len(self._map)).encode())
        state.update(self._map[: self._header_bytes])
        for tensor in self.tensors.values():
            state.update(self._map[tensor.offset : tensor.offset + _SAMPLE_BYTES])
        return f"gguf-{state.hexdigest()}"

    def raw(self, name: str) -> npt.NDArray[np.uint8]:
        """Give a tensor's bytes as they lie in the file, without a copy; valid until `close`."""
        tensor = self.tensors[name]
        return np.frombuffer(self._map, np.uint8, tensor.num_bytes, tensor.offset)

    def close(self) -> None:
        """Unmap the file as soon as no array from `raw` is alive."""
        try:
            self._map.close()
        except BufferError:
            # An array from `raw` still looks at the pages: they go when it does.
            return


def _map(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise ModelLoadError(f"{path}: the file is empty; fetch it again")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as e:
        raise ModelLoadError(f"{path}: cannot be read: {e.strerror}") from e


def _header(cursor: _Cursor) -> tuple[int, int, int]:
    magic = cursor.data[:4]
    if magic != b"GGUF":
        cursor.fail(f"not a GGUF file: it starts with {magic!r}, not b'GGUF'")
    cursor.at = 4
    version = cursor.count("the version", "<I")
    if version & 0xFFFF == 0 and version != 0:
        raise ModelLoadError(f"{cursor.path}: a big-endian GGUF; convert it to little-endian")
    if version not in (2, 3):
        raise ModelLoadError(
            f"{cursor.path}: GGUF version {version} is not supported (2 and 3 are); "
            "convert the model again with a current converter"
        )
    return version, cursor.count("the number of tensors"), cursor.count("the number of keys")


def _metadata(cursor: _Cursor, num_keys: int) -> dict[str, object]:
    values: dict[str, object] = {}
    for index in range(num_keys):
        key = cursor.string(f"metadata key {index} of {num_keys}")
        values[key] = cursor.value(cursor.count(key, "<I"), key)
    return values


def _tensors(
    cursor: _Cursor, num_tensors: int, metadata: Mapping[str, object]
) -> dict[str, GgufTensor]:
    records = [_record(cursor, index, num_tensors) for index in range(num_tensors)]
    align = metadata.get("general.alignment", 32)
    if not isinstance(align, int) or align < 1:
        cursor.fail(f"general.alignment is {align!r}, not a positive integer")
    start = (cursor.at + align - 1) // align * align
    tensors: dict[str, GgufTensor] = {}
    for name, shape, kind, relative in records:
        tensor = GgufTensor(name, shape, kind, start + relative, _size(cursor, name, shape, kind))
        end = tensor.offset + tensor.num_bytes
        if end > cursor.size:
            raise ModelLoadError(
                f"{cursor.path}: tensor {name} ends at byte {end} and the file has "
                f"{cursor.size} bytes; it was cut short, fetch it again"
            )
        if name in tensors:
            raise ModelLoadError(f"{cursor.path}: two tensors are called {name}")
        tensors[name] = tensor
    return tensors


def _record(cursor: _Cursor, index: int, num_tensors: int) -> tuple[str, tuple[int, ...], int, int]:
    what = f"tensor record {index} of {num_tensors}"
    name = cursor.string(what)
    num_dims = cursor.count(what, "<I")
    if not 1 <= num_dims <= _MAX_DIMS:
        cursor.fail(f"tensor {name} has {num_dims} dimensions, not 1 to {_MAX_DIMS}")
    shape = tuple(cursor.count(what) for _ in range(num_dims))[::-1]
    return name, shape, cursor.count(what, "<I"), cursor.count(what)


def _size(cursor: _Cursor, name: str, shape: tuple[int, ...], kind: int) -> int:
    try:
        return num_bytes(shape, kind)
    except ModelLoadError as e:
        raise ModelLoadError(f"{cursor.path}: tensor {name}, {prod(shape)} numbers: {e}") from e
