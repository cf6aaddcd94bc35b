"""All automata over one vocabulary: shared by every grammar that is compiled for it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from ..errors import RequestError
from . import chars
from .budget import Budget
from .disk import DiskFolder
from .disk_walks import DiskWalks
from .languages import Languages
from .masks import Masks
from .node import Nodes
from .pushdown import Pushdown
from .spec import Bitmask
from .state import State
from .terminal import LocalStates
from .utf8 import ByteClasses
from .vocabulary import Vocabulary

HANDOVER_S = 2e-4
IDLE = Budget(math.inf, 1 << 60)  # of what is made before anybody asks


class Pool:
    """Languages, nodes and states, each made once, and the masks of states.

    Thread-safe where it is used through `using`, which sets what an operation may cost.
    `folder` keeps what costs most for later processes.
    """

    def __init__(self, vocabulary: Vocabulary, folder: DiskFolder | None = None) -> None:
        self.vocabulary = vocabulary
        self.classes = ByteClasses(vocabulary.spellable)
        self.languages = Languages(IDLE, chars.spellable(vocabulary.spellable))
        self.locals = LocalStates(self.languages, self.classes, vocabulary.longest)
        self.nodes = Nodes(vocabulary.longest)
        self.pushdown = Pushdown(IDLE)
        walks = None if folder is None else DiskWalks(folder, vocabulary, self.classes)
        self._masks = Masks(vocabulary, self.pushdown, walks)
        self.frontiers = self._masks.frontiers
        self._lock = threading.RLock()
        self._waiting: set[object] = set()  # threads, for the lock

    @property
    def size(self) -> int:
        """Count what is kept: languages, nodes, cells and states. Masks have their own bounds."""
        return len(self.languages) + len(self.locals) + len(self.nodes) + len(self.pushdown)

    @contextmanager
    def using(self, budget: Budget, gives_way: bool = False) -> Iterator[None]:
        """Hold the pool for one operation that may cost `budget`.

        With `gives_way` others may use it in between: for what takes long, such as compiling
        a grammar that nobody else has yet.
        """
        with self._held():
            self.languages.budget = self.pushdown.budget = budget
            if gives_way:
                budget.pause = partial(self._give_way, budget)
            try:
                yield
            except RecursionError as e:
                message = "grammar too large: the constraint is nested too deeply"
                raise RequestError("grammar_budget", message) from e
            finally:
                budget.pause = None
                self.languages.budget = self.pushdown.budget = IDLE

    @contextmanager
    def _held(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            waiter = object()
            self._waiting.add(waiter)
            try:
                self._lock.acquire()
            finally:
                self._waiting.discard(waiter)
        try:
            yield
        finally:
            self._lock.release()

    def _give_way(self, budget: Budget) -> None:
        if self._waiting:
            self._lock.release()
            try:
                time.sleep(HANDOVER_S)  # a lock is not fair: who waits must get to it first
            finally:
                self._lock.acquire()
            self.languages.budget = self.pushdown.budget = budget

    def mask(self, state: State, budget: Budget) -> Bitmask:
        """Give the bitmask of a state; not to be changed. Call it inside `using`."""
        pause, budget.pause = budget.pause, None  # a walk holds numbers that others could change
        try:
            return self._masks.get(state, budget)
        finally:
            budget.pause = pause
