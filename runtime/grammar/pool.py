"""All automata over one vocabulary: shared by every grammar that is compiled for it."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import numpy as np

from . import chars
from .budget import Budget
from .frontier import Frontier, Frontiers
from .languages import Languages
from .node import Nodes
from .pushdown import Config, Pushdown, State
from .spec import Bitmask
from .terminal import WIDE, Group, LocalState, LocalStates
from .utf8 import ByteClasses
from .vocabulary import Vocabulary
from .walk import Walker

MASK_BYTES = 64 << 20  # of masks that are kept
NARROW = 256  # places in the trie: past them, many at once is faster than one by one
IDLE = Budget(math.inf, 1 << 60)  # of what is made before anybody asks


class Pool:
    """Languages, nodes and states, each made once, and the masks of states.

    Thread-safe where it is used through `using`, which sets what an operation may cost.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        classes = ByteClasses(vocabulary.spellable)
        self.languages = Languages(IDLE, chars.spellable(vocabulary.spellable))
        self.locals = LocalStates(self.languages, classes, vocabulary.longest)
        self.nodes = Nodes(vocabulary.longest)
        self.pushdown = Pushdown(IDLE)
        self._frontiers = Frontiers(vocabulary)
        self._local_walker = Walker[LocalState](vocabulary, _groups, _is_last)
        self._state_walker = Walker[State](vocabulary, self.pushdown.groups, _never)
        self._masks: OrderedDict[State, None] = OrderedDict()
        self._insides: dict[LocalState, tuple[Bitmask, Frontier]] = {}
        self._lock = threading.RLock()

    @property
    def size(self) -> int:
        """Count what is kept: languages, nodes, cells and states."""
        kept = (self.languages, self.nodes, self.pushdown, self._frontiers)
        return sum(map(len, kept))

    @contextmanager
    def using(self, budget: Budget) -> Iterator[None]:
        """Hold the pool for one operation that may cost `budget`."""
        with self._lock:
            self.languages.budget = self.pushdown.budget = budget
            try:
                yield
            finally:
                self.languages.budget = self.pushdown.budget = IDLE

    def mask(self, state: State, budget: Budget) -> Bitmask:
        """Give the bitmask of a state; not to be changed. Call it inside `using`."""
        if state.mask is None:
            twin = self.pushdown.twin(state)
            if twin.mask is None:
                twin.mask = self._mask(twin, budget)
                self._keep(twin)
            state.mask = twin.mask
            if state is not twin:
                self._keep(state)
        return state.mask

    def _keep(self, state: State) -> None:
        self._masks[state] = None
        while len(self._masks) * 4 * self.vocabulary.mask_len > MASK_BYTES:
            self._masks.popitem(last=False)[0].mask = None

    def _mask(self, state: State, budget: Budget) -> Bitmask:
        row = np.zeros(self.vocabulary.mask_len, np.int32)
        others: set[Config] = set()
        for config in state.configs:
            if config.local.is_closed and not config.guards and len(config.local.edges) > WIDE:
                self._add_closed(row, config, budget)
            else:
                others.add(config)
        if others:
            self._add_open(row, frozenset(others), budget)
        if state.is_accepting:
            self._set(row, self.vocabulary.eos_ids)
        return row

    def _add_closed(self, row: Bitmask, config: Config, budget: Budget) -> None:
        """Add the tokens inside a JSON string, and those that leave it for what follows."""
        inside = self._insides.get(config.local)
        if inside is None:
            walked = self._local_walker.walk(config.local, budget)
            mask = self.vocabulary.pack(walked.allowed)
            inside = self._insides[config.local] = (mask, self._frontiers.get(walked.exits))
        np.bitwise_or(row, inside[0], out=row)
        after = self.pushdown.closure(config.rest)
        self._set(row, self._narrow(after, inside[1], budget) or ())

    def _add_open(self, row: Bitmask, configs: frozenset[Config], budget: Budget) -> None:
        state = self.pushdown.state(configs, is_accepting=False)
        found = None
        if len(state.first) <= WIDE:
            found = self._narrow(state, self._frontiers.root, budget, NARROW)
        if found is None:
            walked = self._state_walker.walk(state, budget)
            np.bitwise_or(row, self.vocabulary.pack(walked.allowed), out=row)
        else:
            self._set(row, found)

    def _narrow(
        self, state: State, frontier: Frontier, budget: Budget, limit: int = 1 << 40
    ) -> list[int] | None:
        """Give the tokens whose rests from `frontier` on lead on from `state`.

        None once more than `limit` places were passed: another way is faster then.
        """
        found: list[int] = []
        pending = [(state, frontier)]
        step = self.pushdown.step
        count = 0
        while pending:
            state, frontier = pending.pop()
            children = frontier.children
            few, many = state.first, children
            for byte in few if len(few) < len(many) else many:
                child = children.get(byte)
                if child is None or byte not in few:
                    continue
                after = step(state, byte)
                if after is not None:
                    found.extend(child.ids)
                    pending.append((after, child))
            count += 1
            if not count & 63:
                if count > limit:
                    return None
                budget.check_time("the next token's mask")
        return found

    def _set(self, row: Bitmask, ids: Collection[int]) -> None:
        if ids:
            places = np.fromiter(ids, np.int64, len(ids))
            bits = np.left_shift(np.int32(1), (places & 31).astype(np.int32))
            np.bitwise_or.at(row, places >> 5, bits)


def _groups(local: LocalState) -> tuple[Group, ...]:
    return local.groups


def _is_last(local: LocalState) -> bool:
    return local.is_last


def _never(state: State) -> bool:
    return False
