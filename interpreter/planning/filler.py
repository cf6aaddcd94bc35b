"""Outputs that no model wrote: of a given length in tokens, and each one different."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...runtime.model.interface import Tokenizer

MAX_WORDS = 2048
NUM_MARKS = 4  # tokens at the start that tell one output from another
_WORDS = (re.compile(rb" [a-z]{3,8}"), re.compile(rb"[a-z]"))


class Filler:
    """Makes texts whose tokens stay the same when the text is tokenised again."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._words = next(
            (found for form in _WORDS if len(found := _words(tokenizer, form)) > 1),
            [(token_id, "") for token_id in range(2)],  # no words: only the length is right
        )

    def output(self, number: int, num_tokens: int) -> tuple[tuple[int, ...], str]:
        """Give the tokens of the output with this number, and their text."""
        places: list[int] = []
        while len(places) < min(num_tokens, NUM_MARKS):
            number, place = divmod(number, len(self._words))
            places.append(place)
        places += [len(places) % len(self._words)] * (num_tokens - len(places))
        chosen = [self._words[place] for place in places]
        return tuple(token_id for token_id, _ in chosen), "".join(text for _, text in chosen)


def _words(tokenizer: Tokenizer, form: re.Pattern[bytes]) -> list[tuple[int, str]]:
    """Give tokens of this form that stay tokens of their own, whatever follows."""
    known = tokenizer.token_bytes
    found = [
        (token_id, data.decode())
        for token_id, data in enumerate(known)
        if data is not None and form.fullmatch(data)
    ][:MAX_WORDS]
    text = "".join(word for _, word in found)
    return found if tokenizer.encode(text) == [token_id for token_id, _ in found] else []
