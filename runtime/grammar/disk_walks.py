"""Walks through the insides of terminals, kept on disk for later processes."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from .digest import Digests
from .disk import DiskFolder
from .spec import Bitmask
from .terminal import LocalState
from .utf8 import ByteClasses
from .vocabulary import Vocabulary

# The tokens inside a terminal, and the places in the whole trie at which it is left.
InnerWalk: TypeAlias = tuple[Bitmask, tuple[int, ...]]


class DiskWalks:
    """The walks of one pool's places that have a digest. Not thread-safe."""

    def __init__(self, folder: DiskFolder, vocabulary: Vocabulary, classes: ByteClasses) -> None:
        self._folder = folder
        self._mask_len = vocabulary.mask_len
        self._digests = Digests(classes)

    def get(self, local: LocalState, number: int) -> InnerWalk | None:
        """Give the walk from `local` over the slice of that number, None if it is not kept."""
        digest = self._digests.find(local)
        content = None if digest is None else self._folder.get(_name(digest, number))
        if content is None:
            return None
        words = np.frombuffer(content, np.int32)
        return words[: self._mask_len], tuple(words[self._mask_len :].tolist())

    def put(self, local: LocalState, number: int, walk: InnerWalk) -> None:
        """Keep a walk, if its place has a digest."""
        digest = self._digests.find(local)
        if digest is not None:
            mask, nodes = walk
            self._folder.put(
                _name(digest, number), mask.tobytes() + np.array(nodes, np.int32).tobytes()
            )


def _name(digest: bytes, number: int) -> str:
    return f"{digest.hex()}-{number}"
