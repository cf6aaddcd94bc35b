"""Lark grammars: a place in a text is a stack of states of lark's own LALR(1) table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from .lark_lexer import LarkLexing
from .lark_load import END, LarkGrammar, load
from .lark_parts import check_solid
from .mark import Marker
from .node import Lexicon, Node, PartNode, Row, Stacked, Terminal, TooNear
from .pool import Pool


class Stack:
    """The states that the parser is in, the last one first. Made by `Table`: each once."""

    __slots__ = ("near", "rest", "state")

    def __init__(self, state: int, rest: Stack | None) -> None:
        self.state = state
        self.rest = rest
        self.near: dict[int, Stack] = {}  # its tops, by their depth


CUT = Stack(-1, None)  # below the top of a stack: what is there is not known


class Table:
    """A parser without values: stacks in, stacks out. Not thread-safe."""

    def __init__(
        self, grammar: LarkGrammar, pool: Pool, parts: Mapping[str, PartNode], marker: Marker
    ) -> None:
        self._grammar = grammar
        self._pool = pool
        self._parts = parts
        self._marker = marker
        self._lexing = LarkLexing(grammar, pool)
        self._stacks: dict[tuple[int, Stack | None], Stack] = {}
        self._lexicons: dict[int, Lexicon] = {}
        self.start = self._push(grammar.start_state, None)

    def place(self, stack: Stack) -> Node:
        """Give the node of all that may follow at a stack."""
        return self._pool.nodes.make(Place, self, stack)

    def near(self, stack: Stack, depth: int) -> Stack:
        """Give the top of a stack."""
        if stack is CUT:
            return CUT
        found = stack.near.get(depth)
        if found is None:
            rest = stack.rest
            if rest is not None:
                rest = CUT if depth == 1 else self.near(rest, depth - 1)
            found = stack.near[depth] = self._push(stack.state, rest)
        return found

    def rows(self, stack: Stack) -> tuple[Row, ...]:
        """Give each terminal that may come next, with the place after it."""
        lexed = self._lexing.lexed(self._grammar.lexers[stack.state])
        names = frozenset(name for name, _ in lexed if name is not None)
        after = self._shift(stack, names | self._parts.keys() | {END})
        rows: list[Row] = []
        for part in self._parts.values():
            if part.name in after:
                row = self._marker.around(part.name, part.node)
                rows.append((*row, self.place(after[part.name])))
        for name, node in lexed:
            if name is None:
                rows.append((node, self.place(stack)))
            elif name in after:
                rows.append((*self._marker.around(name, node), self.place(after[name])))
        return (*rows, ()) if END in after else tuple(rows)

    def lexicon(self, stack: Stack) -> Lexicon | None:
        """Give the terminals that the lexer tries at a stack; None where a part may come."""
        if self._parts:
            return None
        lexer = self._grammar.lexers[stack.state]
        found = self._lexicons.get(lexer.number)
        if found is None:
            lexed = ((name, cast("Terminal", node)) for name, node in self._lexing.lexed(lexer))
            found = self._lexicons[lexer.number] = Lexicon(lexed)
        return found

    def follow(self, stack: Stack, names: frozenset[str], depth: int) -> dict[str, Node]:
        """Give the place after each of some terminals that may come."""
        after = self._shift(stack, names).items()
        return {name: self.place(self.near(s, depth) if depth else s) for name, s in after}

    def may_end(self, stack: Stack) -> bool:
        """Say whether the text may end."""
        return bool(self._shift(stack, frozenset((END,))))

    def _shift(self, stack: Stack, names: frozenset[str]) -> dict[str, Stack]:
        """Give the stacks after each of some terminals, or the end, that may come."""
        found: dict[str, Stack] = {}
        pending = [(stack, names)]
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
            if stack is CUT:
                raise TooNear
        return self._push(self._grammar.actions[stack.state].shifts[origin], stack)

    def _push(self, state: int, rest: Stack | None) -> Stack:
        key = (state, rest)
        found = self._stacks.get(key)
        if found is None:
            found = self._stacks[key] = Stack(state, rest)
        return found


class Place(Stacked):
    """All that may follow at a stack, ignored text before each terminal included."""

    __slots__ = ("_table", "stack", "twin")

    def __init__(self, table: Table, stack: Stack) -> None:
        self._table = table
        self.stack = stack
        self.twin: Node = self

    def near(self, depth: int) -> Node:
        """Give the place at the top of the stack."""
        return self._table.place(self._table.near(self.stack, depth))

    @property
    def lexicon(self) -> Lexicon | None:
        """The terminals that the lexer tries here; None where a part of the grammar may come."""
        return self._table.lexicon(self.stack)

    @property
    def may_end(self) -> bool:
        """True where the text may end."""
        return self._table.may_end(self.stack)

    def follow(self, names: frozenset[str], depth: int) -> Mapping[str, Node]:
        """Give the place behind each of some terminals that may come."""
        return self._table.follow(self.stack, names, depth)

    def expand(self) -> tuple[Row, ...]:
        """Give each terminal that may come next, with the place after it."""
        return self._table.rows(self.stack)


def build_lark(source: str, pool: Pool, *, parts: Mapping[str, PartNode], marker: Marker) -> Node:
    """Make the node of the texts that `lark.Lark(source, parser="lalr")` parses.

    `parts` are the grammars whose texts stand for terminals that it declares.

    Raises: RequestError: bad_grammar with lark's reason, or naming what is not supported;
    grammar_budget if it is too large.
    """
    check_solid(parts)
    grammar = load(source, parts)
    table = Table(grammar, pool, parts, marker)
    return table.place(table.start)
