"""Which tokens may follow a state: found once, kept, and shared by states that look alike."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from .bits import bits_of, set_bits
from .budget import Budget
from .disk_walks import DiskWalks, InnerWalk
from .frontier import Frontier, Frontiers
from .greedy import Greedy
from .lru import Lru
from .node import TooNear
from .pushdown import Pushdown
from .spec import Bitmask
from .state import Config, State
from .terminal import WIDE, Group, LocalState
from .vocabulary import Vocabulary
from .walk import Walker

MASK_BYTES = 64 << 20  # of masks that states keep
MAX_WALKED = 4096  # walks that are kept; each holds about one mask
NARROW = 256  # places in the trie: past them, many at once is faster than one by one

NEAR, FAR = 4, 1024  # of a parser's stack: what is looked at first, and where all of it is


class Masks:
    """Makes the masks of a pool's states; not thread-safe."""

    def __init__(
        self, vocabulary: Vocabulary, pushdown: Pushdown, disk_walks: DiskWalks | None = None
    ) -> None:
        self._vocabulary = vocabulary
        self._disk_walks = disk_walks
        self._pushdown = pushdown
        self.frontiers = Frontiers(vocabulary)
        self._local_walker = Walker[LocalState](_groups, _is_last)
        self._state_walker = Walker[State](pushdown.groups, _never)
        self._greedy = Greedy(vocabulary, self.frontiers, pushdown)
        self._narrow = self._greedy.narrow
        self._kept: OrderedDict[State, None] = OrderedDict()
        self._insides = Lru[LocalState, tuple[Bitmask, Frontier]](MAX_WALKED)
        self._walked_locals = Lru[tuple[LocalState, int], InnerWalk](MAX_WALKED)
        self._walked_states = Lru[tuple[State, int], Bitmask](MAX_WALKED)

    def get(self, state: State, budget: Budget) -> Bitmask:
        """Give the bitmask of a state; not to be changed."""
        mask = state.mask
        if mask is None:
            twin = self._pushdown.twin(state)
            mask = twin.mask
            if mask is None:
                mask = self._find(twin, budget)
                self._keep(twin, mask)
            if state is not twin:
                self._keep(state, mask)
        return mask

    def _find(self, state: State, budget: Budget) -> Bitmask:
        """Make the mask, or find that of a state with as much of the stacks as matters."""
        depth = NEAR if any(config.local.is_greedy for config in state.configs) else FAR
        while depth < FAR:
            near = self._pushdown.near(state, depth)
            if near.mask is not None:
                return near.mask
            if near.too_near < depth:
                try:
                    mask = self._make(near, budget, depth)
                except TooNear:
                    near.too_near = depth
                else:
                    self._keep(near, mask)
                    return mask
            depth *= 2
        return self._make(state, budget)

    def _keep(self, state: State, mask: Bitmask) -> None:
        state.mask = mask
        self._kept[state] = None
        while len(self._kept) * mask.nbytes > MASK_BYTES:
            self._kept.popitem(last=False)[0].mask = None

    def _make(self, state: State, budget: Budget, depth: int = 0) -> Bitmask:
        row = np.zeros(self._vocabulary.mask_len, np.int32)
        others: set[Config] = set()
        for config in state.configs:
            if config.local.is_closed and not config.guards and len(config.local.edges) > WIDE:
                self._add_closed(row, config, budget)
            elif config.local.is_greedy:
                self._add_greedy(row, config, depth, budget)
            else:
                others.add(config)
        if others:
            is_all = len(others) == len(state.configs) and not state.is_accepting
            start = state if is_all else self._pushdown.state(frozenset(others), is_accepting=False)
            self._add_open(row, start, budget)
        if state.is_accepting:
            set_bits(row, self._vocabulary.eos_ids)
        return row

    def _add_closed(self, row: Bitmask, config: Config, budget: Budget) -> None:
        """Add the tokens inside a JSON string, and those that leave it for what follows."""
        inside = self._inside(config.local, budget)
        np.bitwise_or(row, inside[0], out=row)
        after = self._pushdown.closure(config.rest)
        set_bits(row, self._narrow.all(after, inside[1], budget))

    def _add_greedy(self, row: Bitmask, config: Config, depth: int, budget: Budget) -> None:
        """Add the tokens over a terminal of a lexer and those that follow it."""
        for mask, ids in self._greedy.tokens(config, depth, budget):
            if mask is not None:
                np.bitwise_or(row, mask, out=row)
            set_bits(row, ids)

    def _inside(self, local: LocalState, budget: Budget) -> tuple[Bitmask, Frontier]:
        """Give the tokens inside a JSON string, and the frontier behind its closing quote."""
        found = self._insides.get(local)
        if found is None:
            parts = local.split()
            if parts is None:
                mask, nodes = self._walk_local(local, budget)
                found = (mask, self.frontiers.get(nodes))
            else:
                found = self._subtract(*parts, budget)
            self._insides.put(local, found)
        return found

    def _subtract(
        self, whole: LocalState, texts: frozenset[str], budget: Budget
    ) -> tuple[Bitmask, Frontier]:
        """Leave out some strings: every token that does not close one is as before."""
        mask, frontier = self._inside(whole, budget)
        spelt = self._vocabulary.closings
        closed = [data for text in spelt.keys() & texts for data in spelt[text]]
        if not closed:
            return mask, frontier
        places = [place for data in closed if (place := self.frontiers.behind(data)) is not None]
        left = {node for place in places for node in place.nodes}
        row = mask.copy()
        words = bits_of([i for place in places for i in place.ids], len(mask))
        np.bitwise_and(row, ~words, out=row)
        return row, self.frontiers.get(tuple(n for n in frontier.nodes if n not in left))

    def _add_open(self, row: Bitmask, state: State, budget: Budget) -> None:
        if len(state.first) <= WIDE:
            found = self._narrow.find(state, self.frontiers.root, budget, NARROW)
            if found is not None:
                set_bits(row, found)
                return
        config = next(iter(state.configs))
        if len(state.configs) == 1 and config.rest is None and not config.guards:
            mask, _ = self._walk_local(config.local, budget)  # nothing follows it
        else:
            mask = self._walk_state(state, budget)
        np.bitwise_or(row, mask, out=row)

    def _walk_local(self, local: LocalState, budget: Budget) -> InnerWalk:
        """Give the tokens inside a terminal, and the places in the trie at which it is left.

        Short tokens are looked for apart: more states look alike to them.
        """
        row = np.zeros(self._vocabulary.mask_len, np.int32)
        exits: set[int] = set()
        for number, part in enumerate(self._vocabulary.slices):
            twin = local.over(part.longest)
            walked = self._walked_locals.get((twin, number))
            if walked is None:
                walked = self._walk_slice(twin, number, budget)
                self._walked_locals.put((twin, number), walked)
            np.bitwise_or(row, walked[0], out=row)
            exits.update(walked[1])
        return row, tuple(sorted(exits))

    def _walk_slice(self, local: LocalState, number: int, budget: Budget) -> InnerWalk:
        kept = self._disk_walks
        walked = None if kept is None else kept.get(local, number)
        if walked is None:
            part = self._vocabulary.slices[number]
            found = self._local_walker.walk(local, part, budget)
            nodes = tuple(part.nodes[list(found.exits)].tolist())
            walked = (self._vocabulary.pack_slice(part, found.allowed), nodes)
            if kept is not None:
                kept.put(local, number, walked)
        return walked

    def _walk_state(self, state: State, budget: Budget) -> Bitmask:
        row = np.zeros(self._vocabulary.mask_len, np.int32)
        for number, part in enumerate(self._vocabulary.slices):
            twin = self._pushdown.twin_over(state, part.longest)
            mask = self._walked_states.get((twin, number))
            if mask is None:
                walked = self._state_walker.walk(twin, part, budget)
                mask = self._vocabulary.pack_slice(part, walked.allowed)
                self._walked_states.put((twin, number), mask)
            np.bitwise_or(row, mask, out=row)
        return row


def _groups(local: LocalState) -> tuple[Group, ...]:
    return local.groups


def _is_last(local: LocalState) -> bool:
    return local.is_last


def _never(state: State) -> bool:
    return False
