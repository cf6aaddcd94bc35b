"""Steps over a whole grammar, byte by byte: from one state of a text to the next."""

from __future__ import annotations

import operator
from typing import cast

from .budget import Budget
from .kept import KeptState, Named
from .node import Node, Row, Stacked, Terminal
from .state import NO_GUARDS, Cell, Config, Guards, State
from .switch import Switch, SwitchState
from .terminal import LocalState

MAX_CONFIGS = 20_000  # places at which a text can stand at once


class Pushdown:
    """Steps from state to state over bytes. Not thread-safe: its pool holds a lock."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._cells: dict[tuple[Node, Cell | None], Cell] = {}
        self._states: dict[tuple[frozenset[Config], bool], State] = {}

    def __len__(self) -> int:
        return len(self._cells) + len(self._states)

    def push(self, node: Node, rest: Cell | None) -> Cell:
        """Give the cell of `node` before `rest`."""
        key = (node, rest)
        found = self._cells.get(key)
        if found is None:
            self.budget.spend(1, "the constraint")
            found = Cell(node, rest)
            twin, twin_rest = node.twin, None if rest is None else rest.twin
            if twin is not node or twin_rest is not rest:
                found.twin = self.push(twin, twin_rest)
            self._cells[key] = found  # last: what is above may run out of budget
        return found

    def state(self, configs: frozenset[Config], is_accepting: bool) -> State:
        """Give the state of some configurations."""
        key = (configs, is_accepting)
        found = self._states.get(key)
        if found is None:
            self.budget.spend(1, "the constraint")
            found = self._states[key] = State(configs, is_accepting)
        return found

    def closure(self, cell: Cell | None) -> State:
        """Give where a text stands before `cell`: at the start of all that may come first."""
        if cell is None:
            return self.state(frozenset(), True)
        if cell.closure is None:
            cell.closure = self._close(cell)
        return cell.closure

    def step(self, state: State, byte: int) -> State | None:
        """Give where `byte` leads; None if it may not follow."""
        try:
            return state.edges[byte]
        except KeyError:
            found = state.edges[byte] = self._step(state, byte)
            return found

    def groups(self, state: State) -> list[tuple[list[int], State]]:
        """Give what each byte leads to, bytes that lead to the same state together."""
        found: dict[State, list[int]] = {}
        for data in _alike(state):
            after = self.step(state, data[0])
            if after is not None:
                found.setdefault(after, []).extend(data)
                state.edges.update(dict.fromkeys(data, after))
        return [(data, after) for after, data in found.items()]

    def advance(self, state: State | None, data: bytes) -> State | None:
        """Step over all of `data`."""
        place = 0
        while state is not None and place < len(data):
            chain = state.chain
            if not chain:
                state = self.step(state, data[place])
                place += 1
                continue
            part = data[place : place + len(chain)]
            state = self.skip(state, len(part)) if chain.startswith(part) else None
            place += len(part)
        return state

    def skip(self, state: State, count: int) -> State | None:
        """Step over the first `count` bytes of a state's chain, with no state between."""
        ((local, rest, _),) = state.configs
        configs: set[Config] = set()
        is_accepting = self._enter(local.skip(count), rest, NO_GUARDS, configs)
        return self.state(frozenset(configs), is_accepting) if configs or is_accepting else None

    def behind(self, row_options: tuple[Row, ...], rest: Cell | None) -> State:
        """Give where a text stands before one of some rows."""
        configs: set[Config] = set()
        is_accepting = False
        for row in row_options:
            after = self.closure(self.push_row(row, rest))
            is_accepting = is_accepting or after.is_accepting
            configs.update(after.configs)
        return self.state(frozenset(configs), is_accepting)

    def without(self, state: State, configs: list[Config]) -> State:
        """Give a state without some of its ways to read the text."""
        return self.state(state.configs.difference(configs), state.is_accepting)

    def twin(self, state: State) -> State:
        """Give a state that allows the same tokens, the same for all states alike."""
        if state.twin is None:
            twins = list(map(_twin, state.configs))
            is_same = all(map(operator.is_, twins, state.configs))
            state.twin = state if is_same else self.state(frozenset(twins), state.is_accepting)
        return state.twin

    def near(self, state: State, depth: int) -> State:
        """Give the state with only the tops of its stacks; itself if it has none."""
        configs = (Config(c.local, self.cut(c.rest, depth), c.guards) for c in state.configs)
        return self.state(frozenset(configs), state.is_accepting)

    def cut(self, cell: Cell | None, depth: int) -> Cell | None:
        """Give a cell with only the tops of its stacks."""
        if cell is None:
            return None
        found = cell.near.get(depth)
        if found is None:
            node = cell.node
            near = node.near(depth) if isinstance(node, Stacked) else node
            found = cell.near[depth] = self.push(near, self.cut(cell.rest, depth))
        return found

    def twin_over(self, state: State, horizon: int) -> State:
        """Give a state that allows the same tokens of at most `horizon` bytes."""
        configs = frozenset(Config(c.local.over(horizon), c.rest, c.guards) for c in state.configs)
        return self.state(configs, state.is_accepting)

    def _step(self, state: State, byte: int) -> State | None:
        configs: set[Config] = set()
        is_accepting = False
        for config in state.configs:
            local = config.local.edges.get(byte)
            if local is None:
                continue
            guards = config.guards
            if guards:
                left = step_guards(guards, byte)
                if left is None:
                    continue
                guards = left
            is_accepting |= self._enter(local, config.rest, guards, configs)
        if not configs and not is_accepting:
            return None
        if len(configs) > MAX_CONFIGS:
            self.budget.refuse(f"a text can be read in more than {MAX_CONFIGS} ways at once")
        return self.state(frozenset(configs), is_accepting)

    def _enter(
        self, local: LocalState, rest: Cell | None, guards: Guards, configs: set[Config]
    ) -> bool:
        """Add where a text stands that is at `local`; True if it may end there."""
        if not local.is_final:
            configs.add(Config(local, rest, guards))
            return False
        if local.leads_on:
            configs.add(Config(local, rest, guards))
        if local.is_greedy and local.guard.leads_on:
            guards = guards | {local.guard}
        is_accepting = False
        for after_rest in self.rests(local, rest):
            after = self.closure(after_rest)
            is_accepting = is_accepting or after.is_accepting
            configs.update(guarded(after, guards))
        return is_accepting

    def rests(self, local: LocalState, rest: Cell | None) -> list[Cell | None]:
        """Give what remains behind a terminal: its rest, or the rows that its text decides."""
        if isinstance(local, SwitchState):
            return [self.push_row(row, rest) for row in local.rows()]
        if isinstance(local, KeptState) and rest is not None:
            rows = cast("Named", rest.node).named(local.text)
            return [self.push_row(row, rest.rest) for row in rows]
        return [rest]

    def push_row(self, row: Row, rest: Cell | None) -> Cell | None:
        """Give the cell of a row before `rest`."""
        for part in reversed(row):
            rest = self.push(part, rest)
        return rest

    def _close(self, start: Cell) -> State:
        configs: set[Config] = set()
        is_accepting = False
        seen: set[Cell | None] = set()
        pending: list[Cell | None] = [start]
        while pending:
            cell = pending.pop()
            if cell in seen:
                continue
            seen.add(cell)
            if cell is None:
                is_accepting = True
                continue
            node = cell.node
            if isinstance(node, Switch):
                configs.add(Config(node.start, cell.rest))
                continue
            if isinstance(node, Terminal):
                local = node.start
                if local.leads_on:
                    configs.add(Config(local, cell.rest, frozenset(node.unless)))
                if local.is_final:
                    pending.append(cell.rest)
                continue
            self.budget.spend(1, "the constraint")
            pending.extend(self.push_row(row, cell.rest) for row in node.expand())
        return self.state(frozenset(configs), is_accepting)


def _alike(state: State) -> list[list[int]]:
    """Group the bytes that lead each configuration to the same place."""
    locals_ = {local for c in state.configs for local in (c.local, *c.guards)}
    if len(locals_) == 1:
        (local,) = locals_
        return [list(data) for data, _ in local.groups]
    steps = [local.edges.get for local in locals_]
    found: dict[tuple[LocalState | None, ...], list[int]] = {}
    for byte in state.first:
        found.setdefault(tuple([step(byte) for step in steps]), []).append(byte)
    return list(found.values())


def step_guards(guards: Guards, byte: int) -> Guards | None:
    """Step each guard; None where one is met: the text is not to be read this way."""
    after = [state for guard in guards if (state := guard.edges.get(byte)) is not None]
    return None if any(state.is_final for state in after) else frozenset(after)


def guarded(state: State, guards: Guards) -> frozenset[Config]:
    if not guards:
        return state.configs
    return frozenset(Config(c.local, c.rest, c.guards | guards) for c in state.configs)


def _twin(config: Config) -> Config:
    rest = None if config.rest is None else config.rest.twin
    if config.local.twin is config.local and rest is config.rest:
        return config
    return Config(config.local.twin, rest, config.guards)
