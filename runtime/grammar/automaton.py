"""The automaton over bytes, made deterministic only where somebody looks.

A state says by itself where a text may stand, so it outlives the tables: these are
caches, and are dropped when they grow too large.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .budget import Budget
from .positions import ACCEPT, Places, Positions, State
from .utf8 import DEAD, WHOLE

MAX_STATES = 20_000  # known at once: 20 MB of rows
MAX_KEPT = 1_000_000  # positions and nodes in all known states together: under 100 MB
LOOP_BYTES = 32  # a state that keeps this many bytes is worth the check for whole subtrees

States: TypeAlias = npt.NDArray[np.int32]
Table: TypeAlias = npt.NDArray[np.int32]
Leads: TypeAlias = State  # not merged yet: nodes in no order, WHOLE among them


@dataclass(slots=True)
class _Tables:
    """What is known of the states: numbers, and rows for those that were looked at."""

    numbers: dict[State, int] = field(default_factory=dict)
    states: list[State] = field(default_factory=list)
    num_parts: int = 0
    rows: Table = field(default_factory=lambda: np.empty((64, 256), np.int32))
    has_row: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(64, np.bool_))
    loops: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros((64, 4), np.uint64))
    is_loop: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(64, np.bool_))

    def number(self, state: State) -> int:
        found = self.numbers.get(state)
        if found is None:
            found = self.numbers[state] = len(self.states)
            self.states.append(state)
            self.num_parts += len(state)
            if found == len(self.has_row):
                self._double()
        return found

    def _double(self) -> None:
        size = len(self.has_row)
        self.rows = np.concatenate((self.rows, np.empty_like(self.rows)))
        self.has_row = np.concatenate((self.has_row, np.zeros(size, np.bool_)))
        self.loops = np.concatenate((self.loops, np.zeros((size, 4), np.uint64)))
        self.is_loop = np.concatenate((self.is_loop, np.zeros(size, np.bool_)))


class Automaton:
    """Steps from state to state over bytes. Not thread-safe: its grammar holds a lock."""

    def __init__(self, positions: Positions, start: State) -> None:
        self.start = start
        self._positions = positions
        self._tables = _Tables()

    @property
    def size_bytes(self) -> int:
        """Estimate the memory that is held."""
        tables, positions = self._tables, self._positions
        parts = 100 * tables.num_parts + 60 * positions.num_kept
        return tables.rows.nbytes + parts + 400 * len(positions)

    def twin(self, state: State) -> State:
        """Give a state that allows the same tokens, the same for all that are alike."""
        return self._positions.twin(state)

    def trim(self) -> None:
        """Forget what is known if it is too much. Numbers given before mean nothing after."""
        tables = self._tables
        num_kept = tables.num_parts + self._positions.num_kept
        if len(tables.states) > MAX_STATES or num_kept > MAX_KEPT:
            self._tables = _Tables()
            self._positions.forget()

    def number(self, state: State) -> int:
        """Give the number of a state, until the next `trim`."""
        return self._tables.number(state)

    def state(self, number: int) -> State:
        """Give a numbered state."""
        return self._tables.states[number]

    def step_many(self, states: States, data: npt.NDArray[np.uint8], budget: Budget) -> States:
        """Step each of `states` by its byte; DEAD where it leads nowhere."""
        tables = self._tables
        missing = states[~tables.has_row[states]]
        if len(missing):
            for number in np.unique(missing).tolist():
                self._build_row(number, budget)
        return self._tables.rows[states, data]

    def keeps(self, states: States, byte_sets: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Say where every byte of the set [n, 4] is known to lead from a state to itself."""
        tables = self._tables
        is_kept = tables.is_loop[states]
        if is_kept.any():
            places = np.flatnonzero(is_kept)
            strange = byte_sets[places] & ~tables.loops[states[places]]
            is_kept[places[strange.any(axis=1)]] = False
        return is_kept

    def advance(self, state: State, data: bytes, budget: Budget) -> State | None:
        """Step over all of `data`; None if it leads nowhere."""
        for byte in data:
            number = self.number(state)
            if self._tables.has_row[number]:
                after = int(self._tables.rows[number, byte])
                state = () if after == DEAD else self.state(after)
            else:  # one step is far less than the whole row
                state = self._target(self._leads(state, byte), budget)
            if not state:
                return None
        return state

    def row(self, number: int, budget: Budget) -> States:
        """Give the states [256] that the bytes lead to."""
        if not self._tables.has_row[number]:
            self._build_row(number, budget)
        row: States = self._tables.rows[number]
        return row

    def _build_row(self, number: int, budget: Budget) -> None:
        state = self.state(number)
        nodes = self._positions.classes.nodes
        borders = set().union(*(nodes[node].borders for node, _ in state if node != ACCEPT))
        row = np.full(256, DEAD, np.int32)
        known: dict[Leads, int] = {}
        for first, end in itertools.pairwise(sorted(borders)):
            leads = self._leads(state, first)
            if leads and leads not in known:
                known[leads] = self.number(self._target(leads, budget))
            row[first:end] = known[leads] if leads else DEAD
        self._keep_row(number, row)

    def _keep_row(self, number: int, row: States) -> None:
        tables = self._tables
        tables.rows[number] = row
        tables.has_row[number] = True
        stays = row == number
        if int(stays.sum()) >= LOOP_BYTES:
            tables.loops[number] = np.packbits(stays, bitorder="little").view(np.uint64)
            tables.is_loop[number] = True

    def _leads(self, state: State, byte: int) -> Leads:
        """Give where `byte` leads: the node it leads to, and the positions behind that."""
        nodes = self._positions.classes.nodes
        steps = ((nodes[node].table[byte], p) for node, p in state if node != ACCEPT)
        return tuple(step for step in steps if step[0] != DEAD)

    def _target(self, leads: Leads, budget: Budget) -> State:
        """Give the state that `leads` are together."""
        parts: dict[int, list[Places]] = {}
        for node, places in leads:
            if node != WHOLE:
                parts.setdefault(node, []).append(places)
                continue
            for root, ends in self._positions.after(places, budget):
                parts.setdefault(root, []).append(ends)
        return tuple((node, _union(parts[node])) for node in sorted(parts))


def _union(sets: list[Places]) -> Places:
    return sets[0] if len(sets) == 1 else frozenset().union(*sets)
