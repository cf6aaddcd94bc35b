"""A compiled grammar, and the matchers that follow one text each."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from .automaton import Automaton
from .budget import Budget
from .masks import MaskCache, allowed_tokens
from .positions import WHOLE_TEXT, State, is_accepting
from .spec import Bitmask
from .utf8 import DEAD
from .vocabulary import Vocabulary

MASK_CACHE_BYTES = 32 << 20
STEP_TIMEOUT_S = 0.5  # for one mask; the engine's step waits for it
MAX_FORCED_BYTES = 4096  # looked ahead at once
ENDED: State = ()  # after an end token: nothing follows


class AutomatonGrammar:
    """A CompiledGrammar over an automaton: immutable outside, a cache inside. Thread-safe."""

    def __init__(self, automaton: Automaton, vocabulary: Vocabulary) -> None:
        self._automaton = automaton
        self._vocabulary = vocabulary
        self._masks = MaskCache(MASK_CACHE_BYTES)
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        """Memory that it holds, masks included; it grows with use, up to a bound."""
        return self._automaton.size_bytes + self._masks.size_bytes

    def matcher(self) -> AutomatonMatcher:
        """Start a matcher at the beginning of the text."""
        return AutomatonMatcher(self, _Place(self._automaton.start, None))

    def mask(self, state: State, budget: Budget | None = None) -> Bitmask:
        """Give the bitmask at a state; not to be changed.

        Raises: RequestError (grammar_budget) if it takes too long.
        """
        with self._lock:
            alike = self._automaton.twin(state)
            mask = self._masks.get(alike)
            if mask is None:
                self._automaton.trim()
                budget = budget or _step_budget()
                mask = allowed_tokens(self._vocabulary, self._automaton, alike, budget)
                self._masks.put(alike, mask)
            return mask

    def advance(self, state: State, token_id: int) -> State | None:
        """Give the state after a token; None if it may not follow."""
        if token_id in self._vocabulary.eos_ids:
            return ENDED if is_accepting(state) else None
        data = self._vocabulary.bytes_of(token_id)
        if data is None:
            return None
        with self._lock:
            self._automaton.trim()
            return self._automaton.advance(state, data, _step_budget())

    def forced(self, state: State) -> bytes:
        """Give the bytes that have no alternative, until there is one or the text may end."""
        found = bytearray()
        with self._lock:
            self._automaton.trim()
            budget = _step_budget()
            number = self._automaton.number(state)
            while len(found) < MAX_FORCED_BYTES:
                if is_accepting(self._automaton.state(number)):
                    break
                row = self._automaton.row(number, budget)
                (leads,) = np.nonzero(row != DEAD)
                if len(leads) != 1:
                    break
                found.append(int(leads[0]))
                number = int(row[leads[0]])
        return bytes(found)


def _step_budget() -> Budget:
    return Budget(STEP_TIMEOUT_S, 0)


@dataclass(frozen=True, slots=True)
class _Place:
    """A state, and the place before the token that led to it."""

    state: State
    before: _Place | None


class AutomatonMatcher:
    """A GrammarMatcher: one chain of places, shared with its forks. One thread at a time."""

    def __init__(self, grammar: AutomatonGrammar, place: _Place) -> None:
        self._grammar = grammar
        self._place = place

    def fill_bitmask(self, row: Bitmask) -> None:
        """Overwrite `row` with the tokens that may come next; see GrammarMatcher."""
        row[:] = 0 if self._place.state == ENDED else self._grammar.mask(self._place.state)

    def accept(self, token_id: int) -> bool:
        """Advance by a token; False, and no change, if the grammar does not allow it."""
        state = self._grammar.advance(self._place.state, token_id)
        if state is None:
            return False
        self._place = _Place(state, self._place)
        return True

    def rollback(self, num_tokens: int) -> None:
        """Take back the last accepted tokens.

        Raises: ValueError if fewer were accepted; nothing changes then.
        """
        place = self._place
        for done in range(num_tokens):
            if place.before is None:
                raise ValueError(f"rollback({num_tokens}): only {done} tokens were accepted")
            place = place.before
        self._place = place

    def fork(self) -> AutomatonMatcher:
        """Give an independent matcher in the same state. O(1)."""
        return AutomatonMatcher(self._grammar, self._place)

    @property
    def is_accepting(self) -> bool:
        """True where the text so far is a whole word of the grammar."""
        return self._place.state == ENDED or is_accepting(self._place.state)

    @property
    def is_finished(self) -> bool:
        """True where the text is whole and nothing can follow, or an end token was accepted."""
        return self._place.state in (ENDED, WHOLE_TEXT)

    def forced(self) -> bytes:
        """Give the bytes that must come next whatever the model says."""
        return b"" if self.is_finished else self._grammar.forced(self._place.state)
