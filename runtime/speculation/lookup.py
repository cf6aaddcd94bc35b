"""Where a text has been before: the longest suffix of it that occurs earlier."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST = 16  # tokens that are compared, at most
MAX_PLACES = 32  # earlier places of the last two tokens that are looked at, the latest first
MAX_GIVEN = 8192  # tokens of a prompt that are read, the last ones

Alike = Sequence[int]  # for each token id that of the token which is taken for the same


class Lookup:
    """The places of every pair of tokens in a text that grows.

    The match is the longest suffix of the text, up to LONGEST tokens, that ends at one of the
    last MAX_PLACES places where its last two tokens stand together, or where its last token
    stands; of the longest ones the latest. Tokens count as the same where they are `alike`.
    A token that goes on with the match costs O(1), another a search of O(MAX_PLACES * LONGEST).
    """

    __slots__ = (
        "_alike",
        "_kinds",
        "_last_pair",
        "_last_place",
        "_previous",
        "at",
        "len",
        "tokens",
    )

    def __init__(self, given: Sequence[int], alike: Alike) -> None:
        self.tokens: list[int] = []
        self.at: int | None = None  # the place behind the match; None without one
        self.len = 0  # of the match
        self._alike = alike
        self._kinds: list[int] = []
        self._last_place: dict[int, int] = {}  # of a kind
        self._last_pair: dict[tuple[int, int], int] = {}
        self._previous: list[int] = []  # of the pair that ends at a place; -1: none
        self._read(given[-MAX_GIVEN:])

    def push(self, token_id: int) -> None:
        """Append a token, and find the match of what the text is now."""
        kind = self._kind(token_id)
        at = self.at
        if at is not None and self._kinds[at] == kind:
            self.at, self.len = at + 1, min(self.len + 1, LONGEST)
        else:
            self.at, self.len = self.find([*self._kinds[1 - LONGEST :], kind])
        self._add(token_id, kind)

    def kinds(self, token_ids: Sequence[int]) -> list[int]:
        """Give the end of the text with `token_ids` behind it, as `find` wants it."""
        return [*self._kinds, *map(self._kind, token_ids)][-LONGEST:]

    def find(self, end: list[int]) -> tuple[int | None, int]:
        """Give the place behind the match of a text that ends in these kinds, and its length."""
        place = self._last_place.get(end[-1])
        if place is None:
            return None, 0
        best, best_len = place, 1
        place = self._last_pair.get((end[-2], end[-1]), -1) if len(end) > 1 else -1
        for _ in range(MAX_PLACES):
            if place < 0:
                break
            length = self._common_len(end, place)
            if length > best_len:
                best, best_len = place, length
                if length == len(end):
                    break
            place = self._previous[place]
        return best + 1, best_len

    def _common_len(self, end: list[int], place: int) -> int:
        """Count the kinds before `place`, itself included, that `end` ends with."""
        kinds = self._kinds
        most = min(len(end), place + 1)
        length = 2
        while length < most and end[-1 - length] == kinds[place - length]:
            length += 1
        return length

    def _kind(self, token_id: int) -> int:
        return self._alike[token_id] if token_id < len(self._alike) else token_id

    def _read(self, token_ids: Sequence[int]) -> None:
        """Append what is given at first, and match its end."""
        alike, size = self._alike, len(self._alike)
        kinds = [alike[i] if i < size else i for i in token_ids]
        for token_id, kind in zip(token_ids[:-1], kinds, strict=False):
            self._add(token_id, kind)
        if kinds:
            self.at, self.len = self.find(kinds[-LONGEST:])
            self._add(token_ids[-1], kinds[-1])

    def _add(self, token_id: int, kind: int) -> None:
        place = len(self.tokens)
        previous = -1
        if place:
            pair = self._kinds[-1], kind
            previous = self._last_pair.get(pair, -1)
            self._last_pair[pair] = place
        self._previous.append(previous)
        self._last_place[kind] = place
        self._kinds.append(kind)
        self.tokens.append(token_id)


def alike_tokens(token_bytes: Sequence[bytes | None]) -> list[int]:
    """Take a word for the same with and without the blank before it.

    A text that is quoted begins without one: `" Maria"` of a letter is `"Maria"` in JSON.
    """
    ids = {data: i for i, data in enumerate(token_bytes) if data}
    return [
        ids.get(data[1:], i) if data is not None and len(data) > 1 and data[0] == 32 else i
        for i, data in enumerate(token_bytes)
    ]
