"""Where a text has been before: the longest suffix of it that occurs earlier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..sequence import Int32, Int64

LONGEST = 16  # tokens that are compared, at most
MAX_PLACES = 32  # earlier places of the last two tokens that are looked at, the latest first
MAX_GIVEN = 8192  # tokens of a prompt that are read, the last ones
PAIR_SHIFT = 32  # of the first token of a pair, in the number that stands for both


class Lookup:
    """The places of every pair of tokens in a text that grows.

    The match goes on as long as the text does as it did there. Else it is looked for anew: the
    longest suffix of the text, up to LONGEST tokens, that ends at one of the last MAX_PLACES
    places where its last two tokens stand together, or at the last place of its last token; of
    the longest ones the latest. Tokens are the same where their kinds are (`alike_tokens`). A
    token costs O(1) while the match goes on, and a search of O(MAX_PLACES * LONGEST) else.

    `given` has one token or more.
    """

    __slots__ = ("_alike", "_kinds", "_pairs", "_places", "_previous", "at", "len", "tokens")

    def __init__(self, given: Int32, alike: Int32) -> None:
        given = given[-MAX_GIVEN:]
        kinds = alike[given].astype(np.int64)
        self.tokens: list[int] = given.tolist()
        self.at: int | None  # the place behind the match; None without one
        self.len: int  # of the match
        self._alike = alike
        self._kinds: list[int] = kinds.tolist()
        pairs = kinds[:-1] << PAIR_SHIFT | kinds[1:]
        # The last place of each kind and of each pair, and for each place where its pair, which
        # ends there, stood before. The end itself is none of them while it is looked up.
        self._places = {kind: place for place, kind in enumerate(self._kinds[:-1])}
        self._pairs = {pair: place for place, pair in enumerate([-1, *pairs[:-1].tolist()])}
        self._previous: list[int] = [-1, *_previous(pairs)]
        self.at, self.len = self.find(self._kinds[-LONGEST:])
        self._note(len(self.tokens) - 1)

    def push(self, token_id: int) -> None:
        """Append a token, and find the match of what the text is now."""
        kind = self._kind(token_id)
        at = self.at
        if at is not None and self._kinds[at] == kind:
            self.at, self.len = at + 1, min(self.len + 1, LONGEST)
        else:
            self.at, self.len = self.find([*self._kinds[1 - LONGEST :], kind])
        self._kinds.append(kind)
        self.tokens.append(token_id)
        place = len(self.tokens) - 1
        self._previous.append(self._pairs.get(self._pair(place), -1))
        self._note(place)

    def kinds(self, token_ids: Sequence[int]) -> list[int]:
        """Give the end of the text with `token_ids` behind it, as `find` wants it."""
        return [*self._kinds[-LONGEST:], *map(self._kind, token_ids)][-LONGEST:]

    def find(self, end: list[int]) -> tuple[int | None, int]:
        """Give the place behind the match of a text that ends in these kinds, and its length."""
        place = self._places.get(end[-1])
        if place is None:
            return None, 0
        best, best_len = place, 1
        place = self._pairs.get(end[-2] << PAIR_SHIFT | end[-1], -1) if len(end) > 1 else -1
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
        return int(self._alike[token_id])

    def _pair(self, place: int) -> int:
        """Give the pair that ends at a place; of the first place one that never comes again."""
        return (self._kinds[place - 1] << PAIR_SHIFT | self._kinds[place]) if place else -1

    def _note(self, place: int) -> None:
        self._places[self._kinds[place]] = self._pairs[self._pair(place)] = place


def _previous(pairs: Int64) -> list[int]:
    """Give for each pair the place where it ended before, -1 if nowhere."""
    found = np.full(len(pairs), -1, np.int64)
    order = np.argsort(pairs, kind="stable")
    is_again = pairs[order[1:]] == pairs[order[:-1]]
    found[order[1:][is_again]] = order[:-1][is_again] + 1
    previous: list[int] = found.tolist()
    return previous


def alike_tokens(token_bytes: Sequence[bytes | None], width: int) -> Int32:
    """Take a word for the same with and without the blank before it: give a kind for each id.

    A text that is quoted begins without one: `" Maria"` of a letter is `"Maria"` in JSON.
    `width` is one more than the largest id there can be.
    """
    kinds = np.arange(width, dtype=np.int32)
    ids = {data: i for i, data in enumerate(token_bytes) if data}
    for data, token_id in ids.items():
        if data[0] == ord(" "):
            kinds[token_id] = ids.get(data[1:], token_id)
    return kinds
