"""Which tokens may follow a state: the trie walked together with the automaton."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import numpy.typing as npt

from .automaton import Automaton, States
from .budget import Budget
from .positions import State, is_accepting
from .spec import Bitmask
from .utf8 import DEAD
from .vocabulary import Ints, Trie, Vocabulary


def allowed_tokens(
    vocabulary: Vocabulary, automaton: Automaton, state: State, budget: Budget
) -> Bitmask:
    """Compute the bitmask of the tokens whose bytes all lead on from `state`.

    Goes down the trie level by level, branches side by side, and drops those that die. A
    branch whose bytes all leave the state as it is counts at once, with all below it.
    """
    trie = vocabulary.trie
    nodes: Ints = np.zeros(1, np.int32)
    states: States = np.array([automaton.number(state)], np.int32)
    spans: list[tuple[Ints, Ints]] = []  # ranks allowed, [first, end)
    while len(nodes):
        is_whole = automaton.keeps(states, trie.below[nodes])
        spans.append((trie.low[nodes], np.where(is_whole, trie.high[nodes], trie.own[nodes])))
        if is_whole.any():
            nodes, states = nodes[~is_whole], states[~is_whole]
        nodes, states = _children(trie, nodes, states)
        states = automaton.step_many(states, trie.byte[nodes], budget)
        is_alive = states != DEAD
        nodes, states = nodes[is_alive], states[is_alive]
    return vocabulary.pack(_fill(spans, len(vocabulary.ranked_ids)), is_accepting(state))


def _children(trie: Trie, nodes: Ints, states: States) -> tuple[Ints, States]:
    """Give all children of `nodes`, each with the state of its parent."""
    counts = trie.num_children[nodes]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    starts = np.repeat(trie.first_child[nodes] - ends + counts, counts)
    return (starts + np.arange(total)).astype(np.int32), np.repeat(states, counts)


def _fill(spans: list[tuple[Ints, Ints]], size: int) -> npt.NDArray[np.bool_]:
    """Give flags [size] that are set inside the spans, which do not overlap."""
    first = np.concatenate([a for a, _ in spans])
    end = np.concatenate([b for _, b in spans])
    changes = np.bincount(first, minlength=size + 1) - np.bincount(end, minlength=size + 1)
    return np.cumsum(changes[:size]) > 0


class MaskCache:
    """The masks last used, by state, up to a number of bytes. Not thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._masks: OrderedDict[State, Bitmask] = OrderedDict()
        self.size_bytes = 0

    def get(self, state: State) -> Bitmask | None:
        """Give a mask that is kept, and count it as just used."""
        found = self._masks.get(state)
        if found is not None:
            self._masks.move_to_end(state)
        return found

    def put(self, state: State, mask: Bitmask) -> None:
        """Keep a mask; drop those least recently used while there are too many."""
        self._masks[state] = mask
        self.size_bytes += mask.nbytes
        while self.size_bytes > self._max_bytes and len(self._masks) > 1:
            self.size_bytes -= self._masks.popitem(last=False)[1].nbytes
