"""Token healing: the last token of a prompt is taken back, and the output spells it anew.

Where a prompt ends, its tokens end as well, though the text that follows would often have
made others: `http:` ends with `:`, after which no model writes `//`, since all that it was
trained on has the token `://` there. So the first token is drawn where the last one of the
prompt stands, from those that spell the same bytes, or begin with them and go on.

After: token healing in guidance (Lundberg, 2023).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from operator import itemgetter

import numpy as np

from .grammar.bits import pack_ids
from .grammar.spec import Bitmask
from .grammar.vocabulary import text_tokens
from .model.interface import Tokenizer
from .sequence import Int32

MAX_MASKS = 256  # that are kept; each is as wide as the vocabulary in bits


class Speller:
    """Knows which tokens can spell given bytes, and go on beyond them. One thread at a time.

    Its table is made when it is first asked: once for a vocabulary, 50 ms for
    49,152 tokens.
    """

    def __init__(self, tokenizer: Tokenizer, width: int) -> None:
        self._tokenizer = tokenizer
        self._width = width
        self._data: list[bytes] = []  # of the tokens that may come as text, sorted
        self._ids: Int32 = np.empty(0, np.int32)  # in the same order
        self._masks: OrderedDict[bytes, Bitmask] = OrderedDict()

    def border(self, prompt: Int32) -> Border | None:
        """Give the border after `prompt`, None if its last token has nothing to gain.

        There must be a token before it, and one that begins with it and goes on.
        """
        if len(prompt) < 2:
            return None
        last_id = int(prompt[-1])
        data = self._bytes_of(last_id)
        if data is None:
            return None
        low, high = self._range(data)
        if low == high or self._data[high - 1] == data:  # sorted: longer ones come last
            return None
        return Border(self, last_id, data)

    def bytes_of(self, token_id: int) -> bytes:
        """Give the bytes of a token that may come as text."""
        data = self._bytes_of(token_id)
        assert data is not None, token_id
        return data

    def mask(self, rest: bytes) -> Bitmask:
        """Give the tokens that begin with `rest`, or from which on it can be spelled; shared."""
        found = self._masks.get(rest)
        if found is None:
            low, high = self._range(rest)
            ids = [self._ids[low:high]]
            for length in range(1, len(rest)):
                if self._can_spell(rest[length:]):
                    ids.append(self._ids[slice(*self._exactly(rest[:length]))])
            found = self._masks[rest] = pack_ids(np.concatenate(ids), self._width)
            if len(self._masks) > MAX_MASKS:
                self._masks.popitem(last=False)
        self._masks.move_to_end(rest)
        return found

    def _can_spell(self, data: bytes) -> bool:
        """Say whether some tokens spell `data`, the last of which may go on beyond it."""
        can = [False] * len(data) + [True]
        for start in reversed(range(len(data))):
            low, high = self._range(data[start:])
            can[start] = low < high or any(
                can[end] and len(range(*self._exactly(data[start:end])))
                for end in range(start + 1, len(data))
            )
        return can[0]

    def _range(self, data: bytes) -> tuple[int, int]:
        """Give where the tokens stand that begin with `data`."""
        self._make_table()
        low = bisect_left(self._data, data)
        head = data.rstrip(b"\xff")  # what follows all texts with a prefix: its last byte grown
        if not head:
            return low, len(self._data)
        return low, bisect_left(self._data, head[:-1] + bytes((head[-1] + 1,)))

    def _exactly(self, data: bytes) -> tuple[int, int]:
        self._make_table()
        return bisect_left(self._data, data), bisect_left(self._data, data + b"\0")

    def _bytes_of(self, token_id: int) -> bytes | None:
        known = self._tokenizer.token_bytes
        if token_id in self._tokenizer.eos_token_ids or not 0 <= token_id < len(known):
            return None
        return known[token_id] or None

    def _make_table(self) -> None:
        if self._data:
            return
        known, eos_ids = self._tokenizer.token_bytes, self._tokenizer.eos_token_ids
        usable = sorted(text_tokens(known, eos_ids, self._width).items(), key=itemgetter(1))
        self._data = [data for _, data in usable]
        self._ids = np.array([i for i, _ in usable], np.int32)


class Border:
    """Where a prompt ends and its output begins: what must be spelled before anything new.

    `last_id` is the prompt's last token, `data` its bytes. Its output owns it.
    """

    __slots__ = ("_rest", "_speller", "data", "last_id", "num_tokens")

    def __init__(self, speller: Speller, last_id: int, data: bytes) -> None:
        self._speller = speller
        self._rest = data
        self.last_id = last_id
        self.data = data
        self.num_tokens = 0  # that were taken here, the one that crosses it included

    @property
    def is_open(self) -> bool:
        """True until all bytes are spelled."""
        return bool(self._rest)

    def mask(self) -> Bitmask:
        """Give the tokens that may come next; not to be changed."""
        return self._speller.mask(self._rest)

    def take(self, token_id: int) -> bool:
        """Take the next token; True if it goes on beyond the border."""
        data = self._speller.bytes_of(token_id)
        spelled, self._rest = self._rest, self._rest[len(data) :]
        self.num_tokens += 1
        return len(data) > len(spelled)
