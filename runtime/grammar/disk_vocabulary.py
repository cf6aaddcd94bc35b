"""A tokenizer's tables on disk: their name, and their bytes.

The name is a digest of all that the tables and the masks depend on, this package's own code
included: no version has to be counted up for what is kept to be right.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .disk import DiskCache, DiskFolder
from .vocabulary import Slice, Tables, Trie, Vocabulary

MIN_TOKENS = 4096  # a smaller vocabulary costs less than its files
ALIGNMENT = 8  # bytes

Array: TypeAlias = npt.NDArray[np.generic]
# The fields of a trie as they are kept, and how many numbers a node has in each.
_TRIE = (
    ("byte", np.uint8, 1),
    ("first_child", np.int32, 1),
    ("num_children", np.int32, 1),
    ("low", np.int32, 1),
    ("own", np.int32, 1),
    ("high", np.int32, 1),
    ("below", np.uint64, 4),
)


def open_vocabulary(
    token_bytes: Sequence[bytes | None], eos_ids: Collection[int], width: int, disk: DiskCache
) -> tuple[Vocabulary, DiskFolder | None]:
    """Give a vocabulary, its tables from `disk` if they are there, and the folder of its masks.

    A small one has no folder.
    """
    if len(token_bytes) < MIN_TOKENS or CODE_DIGEST is None:
        return Vocabulary(token_bytes, eos_ids, width), None
    folder = disk.folder(_digest(CODE_DIGEST, token_bytes[:width], eos_ids, width))
    content = folder.get("vocabulary")
    if content is not None:
        return Vocabulary(token_bytes, eos_ids, width, unpack_tables(content)), folder
    vocabulary = Vocabulary(token_bytes, eos_ids, width)
    folder.put("vocabulary", pack_tables(vocabulary.tables))
    return vocabulary, folder


def pack_tables(tables: Tables) -> bytes:
    """Give the bytes that `unpack_tables` reads on a machine of the same byte order."""
    sizes = [len(tables.slices), len(tables.ranked_ids), len(tables.trie.byte)]
    for part in tables.slices:
        sizes += [part.longest, len(part.ranks), len(part.nodes)]
    chunks = [array.tobytes() for array in (np.array(sizes, np.int64), *_arrays(tables))]
    return b"".join(chunk + bytes(-len(chunk) % ALIGNMENT) for chunk in chunks)


def unpack_tables(content: memoryview) -> Tables:
    """Read what `pack_tables` gave; the arrays are views of `content`, and cannot be changed."""
    num_slices, num_tokens, num_nodes = np.frombuffer(content, np.int64, 3).tolist()
    sizes = np.frombuffer(content, np.int64, 3 + 3 * num_slices)[3:].reshape(-1, 3).tolist()
    place = 8 * (3 + 3 * num_slices)

    def take(kind: type[np.generic], count: int) -> Array:
        nonlocal place
        array: Array = np.frombuffer(content, kind, count, place)
        place += array.nbytes + -array.nbytes % ALIGNMENT
        return array

    def trie(num_nodes: int) -> Trie:
        fields = {name: take(kind, num_nodes * columns) for name, kind, columns in _TRIE}
        fields["below"] = fields["below"].reshape(-1, 4)
        return Trie(**fields)  # type: ignore[arg-type]  # _TRIE says which is which

    ranked_ids, whole = take(np.int64, num_tokens), trie(num_nodes)
    slices: list[Slice] = []
    for longest, num_ranks, num_places in sizes:
        ranks, nodes = take(np.int64, num_ranks), take(np.int32, num_places)
        slices.append(Slice(trie(num_places), ranks, longest, nodes))  # type: ignore[arg-type]
    return Tables(ranked_ids, whole, tuple(slices))  # type: ignore[arg-type]


def _arrays(tables: Tables) -> Iterator[Array]:
    yield tables.ranked_ids
    yield from (getattr(tables.trie, name) for name, _, _ in _TRIE)
    for part in tables.slices:
        yield part.ranks
        yield part.nodes
        yield from (getattr(part.trie, name) for name, _, _ in _TRIE)


def _digest(
    code: bytes, token_bytes: Sequence[bytes | None], eos_ids: Collection[int], width: int
) -> str:
    found = hashlib.sha256(code)
    found.update(repr((sys.byteorder, width, sorted(eos_ids))).encode())
    lengths = [-1 if data is None else len(data) for data in token_bytes]
    found.update(np.array(lengths, np.int64).tobytes())
    found.update(b"".join(filter(None, token_bytes)))
    return found.hexdigest()[:32]


def _digest_code() -> bytes | None:
    """Give the digest of the code that makes tables, languages and masks; None without sources."""
    found = hashlib.sha256()
    folder = Path(__file__).parent
    try:
        for path in sorted(folder.rglob("*.py")):
            code = path.read_bytes()
            found.update(f"{path.relative_to(folder)} {len(code)}\n".encode())
            found.update(code)
    except OSError:
        return None
    return found.digest() if Path(__file__).is_file() else None


# At import: by the time the first grammar comes, a newer version may have been installed.
CODE_DIGEST = _digest_code()
