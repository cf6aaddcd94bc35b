"""A list of texts as positions: their trie, so that common beginnings are one path."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import RequestError
from .expr import Chars
from .positions import Positions


def build_choices(choices: Sequence[str], positions: Positions, start: int) -> list[int]:
    """Add the trie of `choices` behind `start`; give the positions at which one is whole.

    Raises: RequestError (bad_grammar), naming the choice.
    """
    if not choices:
        raise RequestError("bad_grammar", "choices: the list is empty; give at least one text")
    children: dict[tuple[int, str], int] = {}
    finals: list[int] = []
    for number, choice in enumerate(choices):
        _check(choice, number)
        place = start
        for char in choice:
            if (place, char) not in children:
                child = children[place, char] = positions.add("the list of choices")
                positions.connect(place, Chars(((ord(char), ord(char)),)), child)
            place = children[place, char]
        finals.append(place)
    return finals


def _check(choice: object, number: int) -> None:
    if not isinstance(choice, str):
        message = f"choices[{number}] is {choice!r}: each choice must be a text"
        raise RequestError("bad_grammar", message)
    if any("\ud800" <= c <= "\udfff" for c in choice):
        message = f"choices[{number}] is {choice!r}: a lone surrogate has no UTF-8 form"
        raise RequestError("bad_grammar", message)
