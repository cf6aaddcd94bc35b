"""What one output may write next, and how sure that is, by what came true before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..sequence import Int32
from .follower import Follower
from .lookup import LONGEST, Lookup

# How often the token after a match comes, by the least length of the match: what is supposed at
# first. In quotations, answers to questions and free texts of the default model it was as often or
# more. Lengths from one of these to the next are a class.
CHANCES = {0: 0.0, 1: 0.14, 2: 0.42, 3: 0.55, 5: 0.7, 8: 0.82, LONGEST: 0.96}
WEIGHT = 4.0  # of what is supposed, in tokens seen
MEMORY = 0.9  # what was seen counts so much less with each next token of its class

_SUPPOSED = tuple(CHANCES.values())
_CLASS_OF = tuple(max(i for i, low in enumerate(CHANCES) if low <= n) for n in range(LONGEST + 1))


@dataclass(frozen=True, slots=True)
class Guess:
    """A token, and the chance that it and all guesses before it come true.

    `gain` are the draws that it saves then: none where the grammar forces what follows.
    """

    token_id: int
    reach: float
    gain: float


class Guesser:
    """Guesses the tokens of one output from its text so far. Its request owns it.

    It also learns while nothing is drafted: each drawn token is held against what would have
    been guessed. So a draft costs a row only where guesses have been coming true.
    """

    __slots__ = ("_hits", "_lookup", "_tries")

    def __init__(self, token_ids: Int32, alike: Int32) -> None:
        self._lookup = Lookup(token_ids, alike)
        self._hits = [0.0] * len(CHANCES)
        self._tries = [0.0] * len(CHANCES)

    def note(self, token_ids: Sequence[int]) -> None:
        """Take what the output wrote: a drawn token, and those that it forced."""
        lookup = self._lookup
        if lookup.at is not None and token_ids:
            length_class = _CLASS_OF[lookup.len]
            is_hit = lookup.tokens[lookup.at] == token_ids[0]
            self._hits[length_class] = MEMORY * self._hits[length_class] + is_hit
            self._tries[length_class] = MEMORY * self._tries[length_class] + 1
        for token_id in token_ids:
            lookup.push(token_id)

    def chance(self, match_len: int) -> float:
        """Give the chance that the token after a match of this length comes next."""
        i = _CLASS_OF[match_len]
        return (self._hits[i] + WEIGHT * _SUPPOSED[i]) / (self._tries[i] + WEIGHT)

    @property
    def next_chance(self) -> float:
        """Give the chance of the first guess; 0 if there is none."""
        return 0.0 if self._lookup.at is None else self.chance(self._lookup.len)

    def guess(self, follower: Follower, floor: float) -> list[Guess]:
        """Give tokens that may come next, as long as all of them do with a chance of `floor`.

        Raises: RequestError as the follower does.
        """
        found: list[Guess] = []
        lookup, reach = self._lookup, 1.0
        at, match_len = lookup.at, lookup.len
        draft: list[int] = []
        while True:
            token_id, forced = self._at(at, draft), follower.forced()
            if forced is not None:
                if found:
                    found[-1] = Guess(found[-1].token_id, reach, 0.0)
            elif token_id is None:
                return found
            else:
                reach *= self.chance(match_len)
            is_followed = forced is None or forced == token_id
            token_id = token_id if forced is None else forced
            if reach < floor or token_id is None or not follower.take(token_id):
                return found
            draft.append(token_id)
            found.append(Guess(token_id, reach, reach))
            if is_followed and at is not None:
                at, match_len = at + 1, min(match_len + 1, LONGEST)
            else:
                at, match_len = lookup.find(lookup.kinds(draft))

    def _at(self, at: int | None, draft: list[int]) -> int | None:
        """Give the token at a place of the text with the draft behind it."""
        if at is None:
            return None
        tokens = self._lookup.tokens
        return tokens[at] if at < len(tokens) else draft[at - len(tokens)]
