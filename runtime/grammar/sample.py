"""Texts of a grammar at random, and whether a text is one: without a model, byte by byte."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator

from ..errors import RequestError
from .budget import Budget
from .kept import KeptState
from .pool import Pool
from .state import Cell, Config, State

TIMEOUT_S = 10.0
MAX_SEARCHED = 50_000  # states looked at for a way to the end
DEPTH_COST = 12  # of a part left open, in bytes that a way may be longer
NAME_COST = 40  # of a name that is made up
END_CHANCE = 0.1  # of an end where the text may end and may go on
ASCII_CHANCE = 0.9  # of a byte of ASCII where others are possible too


def sample(start: State, pool: Pool, rng: random.Random, max_bytes: int) -> bytes:
    """Give a random text from `start` on.

    From half of `max_bytes` on it takes a short way to the end, which may be longer still.

    Raises: RequestError (grammar_budget) if no end is found.
    """
    found = bytearray()
    state = start
    with pool.using(Budget(TIMEOUT_S, 1 << 40)):
        while not state.is_whole:
            is_long = len(found) >= max_bytes // 2
            if state.is_accepting and (is_long or rng.random() < END_CHANCE):
                break
            if is_long:
                return bytes(found) + _shortest(state, pool)
            byte, state = _random_step(state, pool, rng)
            found.append(byte)
    return bytes(found)


def matches(start: State, pool: Pool, text: str) -> bool:
    """Say whether `text` is a whole text from `start` on.

    Raises: RequestError (grammar_budget) if it takes too long to say.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    with pool.using(Budget(TIMEOUT_S, 1 << 40)):
        state = pool.pushdown.advance(start, data)
    return state is not None and state.is_accepting


def _random_step(state: State, pool: Pool, rng: random.Random) -> tuple[int, State]:
    options = [(byte, after) for data, after in _groups(state, pool) for byte in data]
    if not options:
        raise RequestError("grammar_budget", "the grammar leads to a place without an end")
    plain = [option for option in options if option[0] < 0x80]
    if plain and rng.random() < ASCII_CHANCE:
        options = plain
    return rng.choice(options)


def _shortest(start: State, pool: Pool) -> bytes:
    """Search an end, first where little is left open, no name is made up, and the text is short."""
    ways: dict[State, tuple[State, int] | None] = {start: None}
    seen = {_place(start)}
    pending = [(0, 0, 0, start)]
    while pending:
        _, _, way_cost, state = heapq.heappop(pending)
        if state.is_accepting:
            return bytes(_way(state, ways))[::-1]
        for data, after in _groups(state, pool):
            if (place := _place(after)) not in seen:
                seen.add(place)
                ways[after] = (state, min(data))
                is_new_name = _is_kept(after) and not _is_kept(state)
                cost = way_cost + (NAME_COST if is_new_name else 1)
                guess = cost + DEPTH_COST * _depth(after)
                heapq.heappush(pending, (guess, len(ways), cost, after))
        if len(ways) > MAX_SEARCHED:
            break
    raise RequestError("grammar_budget", "no end of the text was found from here on")


def _is_kept(state: State) -> bool:
    """Say whether the text is surely inside a terminal that remembers it: a free name."""
    return all(isinstance(config.local, KeptState) for config in state.configs)


def _place(state: State) -> frozenset[Config]:
    """Give what a state has in common with those behind other texts of a kept terminal."""
    return frozenset(
        config._replace(local=config.local.inner) if isinstance(config.local, KeptState) else config
        for config in state.configs
    )


def _way(state: State, ways: dict[State, tuple[State, int] | None]) -> Iterator[int]:
    """Give the bytes that led to `state`, the last first."""
    while (step := ways[state]) is not None:
        state, byte = step
        yield byte


def _groups(state: State, pool: Pool) -> list[tuple[list[int], State]]:
    """Give what the bytes lead to, in an order that does not change from run to run."""
    return sorted(pool.pushdown.groups(state), key=lambda group: min(group[0]))


def _depth(state: State) -> int:
    """Count what is still to come after the terminal, where that is least."""
    return min((_chain_len(config.rest) for config in state.configs), default=0)


def _chain_len(cell: Cell | None) -> int:
    length = 0
    while cell is not None:
        length, cell = length + 1, cell.rest
    return length
