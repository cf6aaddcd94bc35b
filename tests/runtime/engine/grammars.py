"""Grammars that are compiled by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from plait.runtime.errors import RequestError
from plait.runtime.grammar.spec import Bitmask
from plait.runtime.model.scripted import IM_END


class Digits:
    """A grammar of exactly `count` digits: the compiled one and the matcher in one."""

    size_bytes = 0
    prefix = b""

    def __init__(self, count: int, seen: str = "") -> None:
        self.count = count
        self.seen = seen

    def matcher(self) -> Digits:
        return Digits(self.count)

    def fork(self) -> Digits:
        return Digits(self.count, self.seen)

    def fill_bitmask(self, row: Bitmask) -> None:
        row[:] = 0
        allowed = [IM_END] if self.is_accepting else list(range(ord("0"), ord("9") + 1))
        for token_id in allowed:
            row.view(np.uint32)[token_id // 32] |= np.uint32(1 << token_id % 32)

    def accept(self, token_id: int) -> bool:
        self.seen += chr(token_id)
        return self.seen.isdigit() and len(self.seen) <= self.count

    def rollback(self, num_tokens: int) -> None:
        self.seen = self.seen[: len(self.seen) - num_tokens]

    @property
    def is_accepting(self) -> bool:
        return len(self.seen) == self.count

    @property
    def is_finished(self) -> bool:
        return self.is_accepting

    def forced(self) -> bytes:
        return b""

    def forced_tokens(
        self, last_id: int | None, encode: Callable[[str], Sequence[int]]
    ) -> tuple[int, ...]:
        return ()


class Costly(Digits):
    """A grammar whose mask takes more than its budget at the second token."""

    def matcher(self) -> Digits:
        return Costly(self.count)

    def fill_bitmask(self, row: Bitmask) -> None:
        if self.seen:
            raise RequestError("grammar_budget", "grammar too large: a repeat {1,9}")
        super().fill_bitmask(row)


class Fixed:
    """A grammar of one text."""

    size_bytes = 0
    prefix = b""

    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at

    def matcher(self) -> Fixed:
        return Fixed(self.text)

    def fork(self) -> Fixed:
        return Fixed(self.text, self.at)

    def fill_bitmask(self, row: Bitmask) -> None:
        row[:] = 0
        token_id = IM_END if self.is_accepting else ord(self.text[self.at])
        row.view(np.uint32)[token_id // 32] |= np.uint32(1 << token_id % 32)

    def accept(self, token_id: int) -> bool:
        self.at += 1
        return True

    def rollback(self, num_tokens: int) -> None:
        self.at -= num_tokens

    @property
    def is_accepting(self) -> bool:
        return self.at == len(self.text)

    @property
    def is_finished(self) -> bool:
        return self.is_accepting

    def forced(self) -> bytes:
        return self.text[self.at :].encode()

    def forced_tokens(
        self, last_id: int | None, encode: Callable[[str], Sequence[int]]
    ) -> tuple[int, ...]:
        return ()
