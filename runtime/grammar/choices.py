"""A list of texts as positions: their trie, so that common beginnings are one path."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import RequestError
from .expr import Chars
from .positions import Positions


def build_choices(
    choices: Sequence[str], positions: Positions, start: int, field: str = "choices"
) -> list[int]:
    """Add the trie of `choices` behind `start`; give the positions at which one is whole.

    Raises: RequestError (bad_grammar), naming the choice.
    """
    if not choices:
        raise RequestError("bad_grammar", f"{field}: the list is empty; give at least one text")
    children: dict[tuple[int, str], int] = {}
    finals: list[int] = []
    for number, choice in enumerate(choices):
        _check(choice, f"{field}[{number}]")
        place = start
        for char in choice:
            if (place, char) not in children:
                child = children[place, char] = positions.add(f"the list of {field}")
                positions.connect(place, Chars(((ord(char), ord(char)),)), child)
            place = children[place, char]
        finals.append(place)
    return finals


def _check(choice: object, item: str) -> None:
    if not isinstance(choice, str):
        message = f"{item} is {choice!r}: each choice must be a text"
        raise RequestError("bad_grammar", message)
    if any("\ud800" <= c <= "\udfff" for c in choice):
        message = f"{item} is {choice!r}: a lone surrogate has no UTF-8 form"
        raise RequestError("bad_grammar", message)
