"""The trie walked together with a state where few bytes lead on: one place after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

from .bits import ids_of
from .budget import Budget
from .frontier import Frontier
from .kept import KeptState
from .pushdown import Pushdown
from .spots import Inside
from .state import Config, State
from .switch import SwitchState
from .terminal import LocalState

NO_LIMIT = 1 << 40
FindInside: TypeAlias = Callable[[LocalState, Frontier, Budget], Inside]


class NarrowWalk:
    """Finds tokens one by one. Not thread-safe.

    `inside` finds those that stay in a JSON string from a place in the trie on, or leave it.
    """

    def __init__(self, pushdown: Pushdown, root: Frontier, inside: FindInside) -> None:
        self._pushdown = pushdown
        self._root = root
        self._inside = inside

    def all(self, state: State, frontier: Frontier, budget: Budget) -> list[int]:
        """Give the tokens whose rests from `frontier` on lead on from `state`."""
        return self.find(state, frontier, budget) or []

    def find(
        self, state: State, frontier: Frontier, budget: Budget, limit: int = NO_LIMIT
    ) -> list[int] | None:
        """Give the tokens whose rests from `frontier` on lead on from `state`.

        None once more than `limit` places were passed: another way is faster then.
        """
        found: list[int] = []
        is_root = frontier is self._root
        is_inside = is_root and any(config.local.is_closed for config in state.configs)
        pending = [(state, frontier)]
        step = self._pushdown.step
        count = 0
        while pending:
            state, frontier = pending.pop()
            chain = state.chain
            if chain:
                after_chain = _along(frontier, chain, found)
                if after_chain is not None and after_chain.children:
                    after = self._pushdown.skip(state, len(chain))
                    if after is not None:
                        pending.append((after, after_chain))
                continue
            apart = _apart(state, is_inside)
            for config in apart:
                follow = self._options if isinstance(config.local, SwitchState) else self._string
                pending.extend(follow(config, frontier, found, budget))
            if apart:
                state = self._pushdown.without(state, apart)
            children = frontier.children
            for byte in children.keys() & state.first:
                after = step(state, byte)
                if after is not None:
                    child = children[byte]
                    found.extend(child.ids)
                    if child.children:
                        pending.append((after, child))
            count += 1
            if not count & 63:
                if count > limit:
                    return None
                budget.check_time("the next token's mask")
        return found

    def _options(
        self, config: Config, frontier: Frontier, found: list[int], _: Budget
    ) -> Iterator[tuple[State, Frontier]]:
        """Follow each text of a switch; give what is behind those that a token passes."""
        local = cast("SwitchState", config.local)
        start = _along(frontier, local.literal, found)
        if start is None:
            return
        children = start.children
        for rest, number in local.rests(children):
            end = _along(start, rest, found)
            if end is not None and end.children:
                yield self._pushdown.behind(local.branch(number), config.rest), end

    def _string(
        self, config: Config, frontier: Frontier, found: list[int], budget: Budget
    ) -> Iterator[tuple[State, Frontier]]:
        """Follow a JSON string, whose inside is the same whatever follows it."""
        inside = self._inside(config.local.twin, frontier, budget)
        found.extend(inside.tokens.ids)
        if inside.tokens.mask is not None:
            found.extend(ids_of(inside.tokens.mask))
        for _, beyond in inside.exits:
            yield self._pushdown.closure(config.rest), beyond


def _apart(state: State, is_inside: bool) -> list[Config]:
    """Give the ways to read the text that need no state for each byte.

    `is_inside`: a walk began inside a JSON string, which is to be walked whole if it is wide.
    """
    return [
        config
        for config in state.configs
        if not config.guards and not isinstance(config.local, KeptState)
        if isinstance(config.local, SwitchState) or (config.local.is_closed and not is_inside)
    ]


def _along(frontier: Frontier, chain: bytes, found: list[int]) -> Frontier | None:
    """Go down a chain of bytes; add the tokens that end on it. None if no token has all of it."""
    for byte in chain:
        child = frontier.children.get(byte)
        if child is None:
            return None
        found.extend(child.ids)
        frontier = child
    return frontier
