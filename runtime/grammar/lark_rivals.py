"""Whether what a terminal takes can hang on what another one sees behind it.

The lexer tries the preferred terminal first. Where a look of that one fails only on what
follows, another takes the same beginning after all, which no mask can ask for beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from .charset import CharSet
from .derive import Derivatives
from .language import Language, is_nullable
from .languages import Languages
from .lark_terminal import MAX_WAYS, Match
from .piece import Guarded

# Of what the terminal took so far: nothing, a text of its own, one that a rival's look keeps.
Taken: TypeAlias = Literal["nothing", "own", "kept"]
# The rival's sure texts and its open ones, those of the terminal; what it took.
Place: TypeAlias = tuple[Language, Language, Language, Taken]


class Rivals:
    """Compares terminals of one pool, behind which some characters may come. Not thread-safe."""

    def __init__(self, languages: Languages, derivatives: Derivatives, firsts: CharSet) -> None:
        self._languages = languages
        self._derivatives = derivatives
        self._firsts = firsts

    def is_open(self, rival: Match, own: Match) -> bool:
        """Say whether a text that `own` takes would be the preferred `rival`'s if less followed.

        True as well where it takes more than `MAX_WAYS` places to find out.
        """
        if rival.open is None:
            return False
        start: Place = (rival.sure, rival.open, own.token, "nothing")
        seen: set[Place] = {start}
        pending: list[Place] = [start]
        while pending and len(seen) <= MAX_WAYS:
            for place in self._steps(pending.pop()):
                _, kept, _, taken = place
                if taken == "kept" and not is_nullable(kept):
                    return True
                if place not in seen:
                    seen.add(place)
                    pending.append(place)
        return bool(pending)

    def _steps(self, place: Place) -> Iterator[Place]:
        """Give the places after each character, those left out that the rival takes for sure."""
        nothing, sets = self._languages.nothing, self._languages.sets
        is_end = place[3] != "nothing" and is_nullable(place[2])
        for chars, (sure, kept, own) in self._rows(place[:3]):
            if is_end and own is nothing and not sets.intersect(chars, self._firsts):
                continue  # no terminal begins so
            taken = _taken(place[3], kept, own)
            is_over = own is nothing and taken == "nothing"
            if not (is_nullable(sure) or is_over or (kept is nothing and taken != "kept")):
                yield sure, kept, own, taken

    def _rows(
        self, languages: tuple[Language, Language, Language]
    ) -> list[tuple[CharSet, list[Language]]]:
        """Give the sets of characters that each language treats alike, and what they leave."""
        sets = self._languages.sets
        rows: list[tuple[CharSet, list[Language]]] = [(sets.all, [])]
        for language in languages:
            split: list[tuple[CharSet, list[Language]]] = []
            for chars, after in rows:
                for others, more in self._derivatives.row(language):
                    split.append((sets.intersect(chars, others), [*after, more]))
                    chars = sets.subtract(chars, others)
                split.append((chars, [*after, self._languages.nothing]))
            rows = [(chars, after) for chars, after in split if chars]
        return rows


def _taken(before: Taken, kept: Language, own: Language) -> Taken:
    """Say what was taken after a character: of all texts so far, the longest counts."""
    is_kept = is_nullable(kept)
    if is_nullable(own):
        is_guarded = isinstance(own.payload, Guarded) and bool(own.payload.pending)
        return "kept" if is_kept or (is_guarded and before == "kept") else "own"
    return "kept" if is_kept and before != "nothing" else before
