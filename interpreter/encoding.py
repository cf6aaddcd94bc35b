"""Tokenise long texts in pieces that many branches share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..runtime.sequence import Int32

if TYPE_CHECKING:
    from ..runtime.model.interface import Tokenizer

# A cut costs a call, and saves one for every other branch with the same piece.
_PIECE_LEN = 512
_MAX_PIECES = 4096
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

        @lru_cache(maxsize=_MAX_PIECES)
        def encode(piece: str) -> Int32:
            return np.asarray(tokenizer.encode(piece), dtype=np.int32)

        self._encode = encode

    def encode(self, text: str) -> Int32:
        """Tokenise plain text; none gives no token."""
        if not text:
            return np.empty(0, dtype=np.int32)
        pieces = [self._encode(piece) for piece in self._pieces(text)]
        return np.concatenate(pieces)

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
