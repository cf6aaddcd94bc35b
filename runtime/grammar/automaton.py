"""The automaton over bytes, made deterministic only where somebody looks.

A state is its set of items, so it outlives the tables: these are caches, and are
dropped when they grow too large.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .budget import Budget
from .positions import ACCEPT, Items, Positions
from .utf8 import DEAD, WHOLE

MAX_STATES = 20_000  # known at once: 20 MB of rows
MAX_ITEMS = 2_000_000  # in all known states together: about 200 MB at the worst
LOOP_BYTES = 32  # a state that keeps this many bytes is worth the check for whole subtrees

States: TypeAlias = npt.NDArray[np.int32]
Table: TypeAlias = npt.NDArray[np.int32]


@dataclass(slots=True)
class _Tables:
    """What is known of the states: numbers, and rows for those that were looked at."""

    numbers: dict[Items, int] = field(default_factory=dict)
    states: list[Items] = field(default_factory=list)
    num_items: int = 0
    rows: Table = field(default_factory=lambda: np.empty((64, 256), np.int32))
    has_row: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(64, np.bool_))
    loops: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros((64, 4), np.uint64))
    is_loop: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(64, np.bool_))

    def number(self, items: Items) -> int:
        found = self.numbers.get(items)
        if found is None:
            found = self.numbers[items] = len(self.states)
            self.states.append(items)
            self.num_items += len(items)
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

    def __init__(self, positions: Positions, start: Items) -> None:
        self.start = start
        self._positions = positions
        self._tables = _Tables()

    @property
    def size_bytes(self) -> int:
        """Estimate the memory that is held."""
        tables = self._tables
        return tables.rows.nbytes + 100 * tables.num_items + 400 * len(self._positions)

    def trim(self) -> None:
        """Forget the tables if they are too large. Numbers given before mean nothing after."""
        tables = self._tables
        if len(tables.states) > MAX_STATES or tables.num_items > MAX_ITEMS:
            self._tables = _Tables()

    def number(self, items: Items) -> int:
        """Give the number of a state, until the next `trim`."""
        return self._tables.number(items)

    def state(self, number: int) -> Items:
        """Give the items of a numbered state."""
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

    def advance(self, items: Items, data: bytes, budget: Budget) -> Items | None:
        """Step over all of `data`; None if it leads nowhere."""
        number = self.number(items)
        for byte in data:
            number = int(self.row(number, budget)[byte])
            if number == DEAD:
                return None
        return self.state(number)

    def row(self, number: int, budget: Budget) -> States:
        """Give the states [256] that the bytes lead to."""
        if not self._tables.has_row[number]:
            self._build_row(number, budget)
        row: States = self._tables.rows[number]
        return row

    def _build_row(self, number: int, budget: Budget) -> None:
        budget.check_time("the next token's mask")
        by_node = self._by_node(self.state(number))
        row = np.full(256, DEAD, np.int32)
        borders = sorted(self._borders(by_node))
        known: dict[tuple[tuple[int, int], ...], int] = {}
        nodes = self._positions.classes.nodes
        for first, end in itertools.pairwise([*borders, 256]):
            leads = tuple(
                (node, nodes[node].table[first])
                for node in by_node
                if nodes[node].table[first] != DEAD
            )
            if not leads:
                continue
            if leads not in known:
                known[leads] = self.number(self._target(leads, by_node))
            row[first:end] = known[leads]
        self._keep_row(number, row)

    def _keep_row(self, number: int, row: States) -> None:
        tables = self._tables  # numbering the targets may have made its arrays larger
        tables.rows[number] = row
        tables.has_row[number] = True
        stays = row == number
        if int(stays.sum()) >= LOOP_BYTES:
            tables.loops[number] = np.packbits(stays, bitorder="little").view(np.uint64)
            tables.is_loop[number] = True

    def _by_node(self, items: Items) -> dict[int, list[int]]:
        """Give the positions that wait behind each place inside a character."""
        found: dict[int, list[int]] = {}
        size = len(self._positions)
        for item in items:
            if item != ACCEPT:
                node, position = divmod(item, size)
                found.setdefault(node, []).append(position)
        return found

    def _borders(self, by_node: Iterable[int]) -> set[int]:
        """Give the bytes at which some node's table changes."""
        nodes = self._positions.classes.nodes
        return set().union(*(nodes[node].borders for node in by_node)) - {256}

    def _target(self, leads: tuple[tuple[int, int], ...], by_node: dict[int, list[int]]) -> Items:
        """Give the state that a byte leads to, if it leads from node to node as `leads` says."""
        positions = self._positions
        found: set[int] = set()
        for node, after in leads:
            if after == WHOLE:
                found.update(*(positions.closure(p) for p in by_node[node]))
            else:
                found.update(positions.item(after, p) for p in by_node[node])
        return frozenset(found)
