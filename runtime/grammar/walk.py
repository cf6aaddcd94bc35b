"""The trie walked together with an automaton whose states lead on for many bytes.

Goes down level by level, branches side by side, and drops those that die. A branch whose
bytes all leave the state as it is counts at once, with all below it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from .budget import Budget
from .vocabulary import Ints, Slice, Trie

DEAD = -1
ROOT: Ints = np.zeros(1, np.int32)
MAX_ROWS = 16_384  # known at once: 16 MB
DEEP, FEW = 8, 8  # levels; places: that far down, so few are faster one by one
LOOP_BYTES = 32  # a place that keeps this many bytes is worth the check for whole subtrees

Flags: TypeAlias = npt.NDArray[np.bool_]


P = TypeVar("P", bound=Hashable)  # a place in the automaton, hashed by identity
Passed: TypeAlias = dict[P, list[Ints]]  # nodes of the trie that were reached at each place
Groups: TypeAlias = Iterable[tuple[Iterable[int], P]]  # these bytes lead there


@dataclass(frozen=True, slots=True)
class Walked:
    """The tokens that stay inside, or end at an exit, and the exits that others pass."""

    allowed: Flags  # [ranks]
    exits: tuple[int, ...]  # nodes of the trie, ascending


class Walker(Generic[P]):
    """Walks from places over tokens, keeping the rows it met. Not thread-safe.

    `groups_of` gives what each byte leads to. `is_exit` says where a walk ends, since what
    follows belongs to somebody else.
    """

    def __init__(self, groups_of: Callable[[P], Groups[P]], is_exit: Callable[[P], bool]) -> None:
        self._groups_of = groups_of
        self._is_exit_place = is_exit
        self._forget()

    @property
    def size_bytes(self) -> int:
        """Give the memory of the rows that are kept."""
        return self._rows.nbytes

    def walk(
        self,
        start: P,
        part: Slice,
        budget: Budget,
        nodes: Ints | None = None,
        passed: Passed[P] | None = None,
    ) -> Walked:
        """Give the tokens of a slice whose bytes from `nodes` on all lead on from `start`.

        Adds to `passed` where the walk came by, whole branches that count at once left out.
        """
        if len(self._places) > MAX_ROWS:
            self._forget()
        trie = part.trie
        nodes = ROOT if nodes is None else nodes
        states: Ints = np.full(len(nodes), self._number(start), np.int32)
        spans: list[tuple[Ints, Ints]] = []  # ranks allowed, [first, end)
        exits: list[Ints] = []
        for level in itertools.count():
            if not len(nodes):
                break
            budget.check_time("the next token's mask")
            if level >= DEEP and len(nodes) <= FEW:
                low, end, over = self._walk_few(trie, nodes, states, passed)
                spans.append((low, end))
                exits.append(over)
                break
            is_over = self._is_exit[states]
            is_whole = self._keeps(states, trie.below[nodes]) & ~is_over
            spans.append((trie.low[nodes], np.where(is_whole, trie.high[nodes], trie.own[nodes])))
            exits.append(nodes[is_over & (trie.num_children[nodes] > 0)])
            goes_on = ~(is_whole | is_over)
            nodes, states = children(trie, nodes[goes_on], states[goes_on])
            states = self._step(states, trie.byte[nodes])
            is_alive = states != DEAD
            nodes, states = nodes[is_alive], states[is_alive]
            if passed is not None:
                for number in np.unique(states).tolist():
                    passed.setdefault(self._places[number], []).append(nodes[states == number])
        all_exits = np.sort(np.concatenate(exits)).tolist()
        return Walked(_fill(spans, len(part.ranks)), tuple(all_exits))

    def _walk_few(
        self, trie: Trie, nodes: Ints, states: Ints, passed: Passed[P] | None
    ) -> tuple[Ints, Ints, Ints]:
        """Walk on one by one; give the ranks allowed, [low, end), and the exits."""
        lows, ends, over = [], [], []
        pending = list(zip(nodes.tolist(), states.tolist(), strict=True))
        while pending:
            node, state = pending.pop()
            lows.append(trie.low[node])
            ends.append(trie.own[node])
            num_children = int(trie.num_children[node])
            if not num_children:
                continue
            if self._is_exit[state]:
                over.append(node)
                continue
            if not self._has_row[state]:
                self._build_row(state)
            row, first = self._rows[state], int(trie.first_child[node])
            for child in range(first, first + num_children):
                after = int(row[trie.byte[child]])
                if after != DEAD:
                    pending.append((child, after))
                    if passed is not None:
                        passed.setdefault(self._places[after], []).append(np.array([child]))
        return np.array(lows, np.int32), np.array(ends, np.int32), np.array(over, np.int32)

    def _forget(self) -> None:
        self._numbers: dict[P, int] = {}
        self._places: list[P] = []
        self._rows: Ints = np.empty((64, 256), np.int32)
        self._has_row: Flags = np.zeros(64, np.bool_)
        self._is_exit: Flags = np.zeros(64, np.bool_)
        self._is_loop: Flags = np.zeros(64, np.bool_)
        self._loops: npt.NDArray[np.uint64] = np.zeros((64, 4), np.uint64)

    def _number(self, place: P) -> int:
        found = self._numbers.get(place)
        if found is None:
            is_exit = self._is_exit_place(place)  # first: it may run out of budget
            found = self._numbers[place] = len(self._places)
            self._places.append(place)
            if found == len(self._has_row):
                self._double()
            self._is_exit[found] = is_exit
        return found

    def _double(self) -> None:
        size = len(self._has_row)
        self._rows = np.concatenate((self._rows, np.empty_like(self._rows)))
        self._loops = np.concatenate((self._loops, np.zeros((size, 4), np.uint64)))
        no = np.zeros(size, np.bool_)
        self._has_row = np.concatenate((self._has_row, no))
        self._is_exit = np.concatenate((self._is_exit, no))
        self._is_loop = np.concatenate((self._is_loop, no))

    def _step(self, states: Ints, data: npt.NDArray[np.uint8]) -> Ints:
        missing = states[~self._has_row[states]]
        for number in sorted(set(missing.tolist())):
            self._build_row(number)
        found: Ints = self._rows[states, data]
        return found

    def _build_row(self, number: int) -> None:
        row = np.full(256, DEAD, np.int32)
        for data, place in self._groups_of(self._places[number]):
            row[np.frombuffer(bytes(data), np.uint8)] = self._number(place)
        self._rows[number] = row
        self._has_row[number] = True
        stays = row == number
        if int(stays.sum()) >= LOOP_BYTES:
            self._loops[number] = np.packbits(stays, bitorder="little").view(np.uint64)
            self._is_loop[number] = True

    def _keeps(self, states: Ints, byte_sets: npt.NDArray[np.uint64]) -> Flags:
        """Say where every byte of the set [n, 4] is known to lead from a state to itself."""
        is_kept = self._is_loop[states]
        if is_kept.any():
            places = np.flatnonzero(is_kept)
            strange = byte_sets[places] & ~self._loops[states[places]]
            is_kept[places[strange.any(axis=1)]] = False
        return is_kept


def children(trie: Trie, nodes: Ints, states: Ints) -> tuple[Ints, Ints]:
    """Give all children of `nodes`, each with the state of its parent."""
    counts = trie.num_children[nodes]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    starts = np.repeat(trie.first_child[nodes] - ends + counts, counts)
    return (starts + np.arange(total)).astype(np.int32), np.repeat(states, counts)


def _fill(spans: list[tuple[Ints, Ints]], size: int) -> Flags:
    """Give flags [size] that are set inside the spans, which do not overlap."""
    first = np.concatenate([a for a, _ in spans])
    end = np.concatenate([b for _, b in spans])
    changes = np.bincount(first, minlength=size + 1) - np.bincount(end, minlength=size + 1)
    return np.cumsum(changes[:size]) > 0
