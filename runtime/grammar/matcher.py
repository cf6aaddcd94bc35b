"""A compiled grammar, and the matchers that follow one text each."""

from __future__ import annotations

from dataclasses import dataclass

from .budget import Budget
from .forced import Encode, forced_bytes, forced_tokens
from .node import Node
from .pool import Pool
from .spec import Bitmask
from .state import State

# For one mask, since the engine's step waits for it. The states are the limit that counts: the
# time also has garbage collections in it.
STEP_STATES = 60_000
STEP_TIMEOUT_S = 2.0


class PooledGrammar:
    """A CompiledGrammar over the automata of a pool: immutable. Thread-safe."""

    def __init__(
        self, pool: Pool, start: State, size_bytes: int, node: Node, prefix: bytes = b""
    ) -> None:
        self._pool = pool
        self._start = start
        self.node = node  # the whole of it: `start` is its beginning
        self.size_bytes = size_bytes  # what compiling it added to the pool, about
        self.prefix = prefix  # the bytes of `GrammarSpec.prefix`

    @property
    def pool(self) -> Pool:
        """The pool that holds its automata."""
        return self._pool

    @property
    def start(self) -> State:
        """Where every text begins."""
        return self._start

    def matcher(self) -> PooledMatcher:
        """Start a matcher at the beginning of the text."""
        return PooledMatcher(self._pool, _Place(self._start, None))


@dataclass(frozen=True, slots=True)
class _Place:
    """A state, and the place before the token that led to it; state None: it has ended."""

    state: State | None
    before: _Place | None


class PooledMatcher:
    """A GrammarMatcher: one chain of places, shared with its forks. One thread at a time."""

    __slots__ = ("_place", "_pool")

    def __init__(self, pool: Pool, place: _Place) -> None:
        self._pool = pool
        self._place = place

    def fill_bitmask(self, row: Bitmask) -> None:
        """Overwrite `row` with the tokens that may come next; see GrammarMatcher."""
        state = self._place.state
        if state is None:
            row[:] = 0
            return
        mask = state.mask  # read once: other threads may drop it
        if mask is None:
            budget = _step_budget()
            with self._pool.using(budget):
                mask = self._pool.mask(state, budget)
        row[:] = mask

    def accept(self, token_id: int) -> bool:
        """Advance by a token; False, and no change, if the grammar does not allow it."""
        state = self._place.state
        if state is None:
            return False
        try:
            after = state.tokens[token_id]
        except KeyError:
            if token_id in self._pool.vocabulary.eos_ids:
                return self._end(state)
            after = state.tokens[token_id] = self._advance(state, token_id)
        if after is None:
            return False
        self._place = _Place(after, self._place)
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

    def fork(self) -> PooledMatcher:
        """Give an independent matcher in the same state. O(1)."""
        return PooledMatcher(self._pool, self._place)

    @property
    def is_accepting(self) -> bool:
        """True where the text so far is a whole word of the grammar."""
        return self._place.state is None or self._place.state.is_accepting

    @property
    def is_finished(self) -> bool:
        """True where the text is whole and nothing can follow, or an end token was accepted."""
        return self._place.state is None or self._place.state.is_whole

    def forced(self) -> bytes:
        """Give the bytes that must come next whatever the model says."""
        state = self._place.state
        if state is None:
            return b""
        with self._pool.using(_step_budget()):
            return forced_bytes(state, self._pool)[0]

    def forced_tokens(self, last_id: int | None, encode: Encode) -> tuple[int, ...]:
        """Give the tokens that must come next; see GrammarMatcher."""
        state = self._place.state
        if state is None:
            return ()
        ahead = state.ahead
        if ahead is not None:
            found = ahead.tokens.get(last_id) if ahead.data else ()
            if found is not None:
                return found
        with self._pool.using(_step_budget()):
            return forced_tokens(state, last_id, self._pool, encode)

    def _advance(self, state: State, token_id: int) -> State | None:
        data = self._pool.vocabulary.bytes_of(token_id)
        if data is None:
            return None
        with self._pool.using(_step_budget()):
            return self._pool.pushdown.advance(state, data)

    def _end(self, state: State) -> bool:
        if state.is_accepting:
            self._place = _Place(None, self._place)
        return state.is_accepting


def _step_budget() -> Budget:
    return Budget(STEP_TIMEOUT_S, STEP_STATES)
