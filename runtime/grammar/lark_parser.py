"""Lark grammars: a place in a text is a stack of states of lark's own LALR(1) table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .lark_lexer import LarkLexing
from .lark_load import END, LarkGrammar, load
from .lark_parts import check_solid
from .mark import Marker
from .node import Inner, Node, Row
from .pool import Pool

START = "start"
NO_PARTS: Mapping[str, Inner] = MappingProxyType({})


class Stack:
    """The states that the parser is in, the last one first. Made by `Table`: each once."""

    __slots__ = ("rest", "state")

    def __init__(self, state: int, rest: Stack | None) -> None:
        self.state = state
        self.rest = rest


class Table:
    """A parser without values: stacks in, stacks out. Not thread-safe."""

    def __init__(
        self, grammar: LarkGrammar, pool: Pool, parts: Mapping[str, Inner], marker: Marker
    ) -> None:
        self._grammar = grammar
        self._pool = pool
        self._parts = parts
        self._marker = marker
        self._lexing = LarkLexing(grammar, pool)
        self._stacks: dict[tuple[int, Stack | None], Stack] = {}
        self.start = self._push(grammar.start_state, None)

    def place(self, stack: Stack) -> Node:
        """Give the node of all that may follow at a stack."""
        return self._pool.nodes.make(Place, self, stack)

    def rows(self, stack: Stack) -> tuple[Row, ...]:
        """Give each terminal that may come next, with the place after it."""
        lexed = self._lexing.lexed(self._grammar.lexers[stack.state])
        names = frozenset(name for name, _ in lexed if name is not None)
        after = self._shift(stack, names | self._parts.keys())
        rows: list[Row] = []
        for inner in self._parts.values():
            if inner.name in after:
                row = self._marker.around(inner.name, inner.node)
                rows.append((*row, self.place(after[inner.name])))
        for name, node in lexed:
            if name is None:
                rows.append((node, self.place(stack)))
            elif name in after:
                rows.append((*self._marker.around(name, node), self.place(after[name])))
        return (*rows, ()) if END in after else tuple(rows)

    def _shift(self, stack: Stack, names: frozenset[str]) -> dict[str, Stack]:
        """Give the stacks after each of some terminals, and after the end, that may come."""
        found: dict[str, Stack] = {}
        pending = [(stack, names | {END})]
        while pending:
            stack, names = pending.pop()
            if END in names and stack.state == self._grammar.end_state:
                found[END] = stack
            actions = self._grammar.actions[stack.state]
            for name in names & actions.shifts.keys():
                found[name] = self._push(actions.shifts[name], stack)
            for (size, origin), lookaheads in actions.reduces.items():
                left = names & lookaheads
                if left:
                    pending.append((self._reduce(stack, size, origin), left))
        return found

    def _reduce(self, stack: Stack, size: int, origin: str) -> Stack:
        for _ in range(size):
            assert stack.rest is not None
            stack = stack.rest
        return self._push(self._grammar.actions[stack.state].shifts[origin], stack)

    def _push(self, state: int, rest: Stack | None) -> Stack:
        key = (state, rest)
        found = self._stacks.get(key)
        if found is None:
            found = self._stacks[key] = Stack(state, rest)
        return found


class Place:
    """All that may follow at a stack, ignored text before each terminal included."""

    __slots__ = ("_table", "stack", "twin")

    def __init__(self, table: Table, stack: Stack) -> None:
        self._table = table
        self.stack = stack
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give each terminal that may come next, with the place after it."""
        return self._table.rows(self.stack)


def build_lark(
    source: str,
    pool: Pool,
    start: str = START,
    *,
    parts: Mapping[str, Inner] = NO_PARTS,
    marker: Marker | None = None,
) -> Node:
    """Make the node of the texts that `lark.Lark(source, parser="lalr", start=start)` parses.

    `parts` are the grammars whose texts stand for terminals that it declares.

    Raises: RequestError: bad_grammar with lark's reason, or naming what is not supported;
    grammar_budget if it is too large.
    """
    check_solid(parts)
    grammar = load(source, start, parts)
    table = Table(grammar, pool, parts, marker or Marker(pool.nodes, None))
    return table.place(table.start)
