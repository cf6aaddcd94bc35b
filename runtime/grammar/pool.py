"""All automata over one vocabulary: shared by every grammar that is compiled for it."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import RequestError
from . import chars
from .budget import Budget
from .languages import Languages
from .masks import Masks
from .node import Nodes
from .pushdown import Pushdown, State
from .spec import Bitmask
from .terminal import LocalStates
from .utf8 import ByteClasses
from .vocabulary import Vocabulary

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
        self._masks = Masks(vocabulary, self.pushdown)
        self.frontiers = self._masks.frontiers
        self._lock = threading.RLock()

    @property
    def size(self) -> int:
        """Count what is kept: languages, nodes, cells and states. Masks have their own bounds."""
        return len(self.languages) + len(self.locals) + len(self.nodes) + len(self.pushdown)

    @contextmanager
    def using(self, budget: Budget) -> Iterator[None]:
        """Hold the pool for one operation that may cost `budget`."""
        with self._lock:
            self.languages.budget = self.pushdown.budget = budget
            try:
                yield
            except RecursionError as e:
                message = "grammar too large: the constraint is nested too deeply"
                raise RequestError("grammar_budget", message) from e
            finally:
                self.languages.budget = self.pushdown.budget = IDLE

    def mask(self, state: State, budget: Budget) -> Bitmask:
        """Give the bitmask of a state; not to be changed. Call it inside `using`."""
        return self._masks.get(state, budget)
