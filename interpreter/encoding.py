"""Tokenise long texts in pieces that many branches share."""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..runtime.sequence import Int32

if TYPE_CHECKING:
    from ..runtime.model.interface import Tokenizer

# A cut costs a call, and saves one for every other branch with the same piece.
_PIECE_LEN = 512
_MAX_BYTES = 4 * 2**20  # of the pieces that are kept
_ENTRY_BYTES = 200  # what keeping a piece takes beside its text and its tokens
_CUT = re.compile(r"(?<=\S) (?=\w)")
_SPANS_A_CUT = re.compile(rb"[^\s] ")


class TextEncoder:
    """Gives a text's tokens, as `tokenizer.encode` does, from a memory of its pieces.

    Branches of a fork and rows of a batch begin with the same long text, and all of it
    waits to be tokenised with what follows it. Where no token of the vocabulary has a
    space after another character, no token reaches over the space between two words: the
    tokens of both sides are found apart, and put together they are the whole text's. A
    vocabulary with such a token is not cut.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._is_cut = not any(
            data is not None and _SPANS_A_CUT.search(data) for data in tokenizer.token_bytes
        )
        self._tokenizer = tokenizer
        # What was asked for last is last. As bytes, small ones lie in Python's own pools: arrays
        # that stay would lie scattered over the heap, and ten times their size would be resident.
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._kept_bytes = 0

    def encode(self, text: str) -> Int32:
        """Tokenise plain text; none gives no token."""
        if not text:
            return np.empty(0, dtype=np.int32)
        pieces = [self._encode(piece) for piece in self._pieces(text)]
        return np.concatenate(pieces)

    def _encode(self, piece: str) -> Int32:
        found = self._kept.get(piece)
        if found is not None:
            self._kept.move_to_end(piece)
            return np.frombuffer(found, np.int32)
        token_ids = np.asarray(self._tokenizer.encode(piece), dtype=np.int32)
        self._keep(piece, token_ids.tobytes())
        return token_ids

    def _keep(self, piece: str, token_ids: bytes) -> None:
        """Keep a piece, and drop what was not asked for longest; one that is vast is not kept."""
        num_bytes = _kept_bytes(piece, token_ids)
        if num_bytes > _MAX_BYTES:
            return
        self._kept[piece] = token_ids
        self._kept_bytes += num_bytes
        while self._kept_bytes > _MAX_BYTES:
            self._kept_bytes -= _kept_bytes(*self._kept.popitem(last=False))

    def _pieces(self, text: str) -> Iterator[str]:
        """Cut from the start on, so that texts with the same start have the same pieces."""
        start = 0
        while self._is_cut and len(text) - start > _PIECE_LEN:
            cut = _CUT.search(text, start + _PIECE_LEN)
            if cut is None:
                break
            yield text[start : cut.start()]
            start = cut.start()
        yield text[start:]


def _kept_bytes(piece: str, token_ids: bytes) -> int:
    return sys.getsizeof(piece) + sys.getsizeof(token_ids) + _ENTRY_BYTES
