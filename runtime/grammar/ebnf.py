"""EBNF grammars as nodes; left recursion is turned around.

A rule that begins with itself (also through others, and behind symbols that may be empty)
is read from its left corner: first what does not begin with the rule, then, again and
again, what may follow a text of a rule that begins with it.
After: Rosenkrantz and Lewis 1970.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ..errors import RequestError
from .ebnf_checks import check_finite, spellable
from .ebnf_reader import read
from .ebnf_rules import Call, Count, Rules, Symbol, Symbols, components, fixpoint, make_rules
from .language import Language
from .mark import Marker
from .node import Node, PartNode, Row, Rule, Terminal
from .pool import Pool

MAX_UNROLLED = 500  # rules made of repeats that left recursion goes through

# A symbol that takes text, what follows it in its option, and what before it takes none.
Solid: TypeAlias = tuple[Symbol, Symbols, Symbols]


def build_ebnf(source: str, pool: Pool, *, parts: Mapping[str, PartNode], marker: Marker) -> Node:
    """Make the node of the texts of a grammar's rule `root`, or of its first rule.

    `parts` are the grammars that its rules name.

    Raises: RequestError: bad_grammar with line and column, or naming the rule;
    grammar_budget if it is nested too deeply.
    """
    try:
        named = read(source, parts)
        rules = make_rules(named, pool.languages, parts, marker)
    except RecursionError as e:
        message = "grammar too large: the EBNF grammar is nested too deeply"
        raise RequestError("grammar_budget", message) from e
    root = "root" if "root" in named else next(iter(named))
    check_finite(rules, named)
    if all(set(row) <= {pool.languages.empty} for row in rules[root]):
        message = f"ebnf: the rule {root} is empty; give it some text"
        raise RequestError("bad_grammar", f'{message} (# begins a comment, "#" is the character)')
    return _Builder(spellable(rules, root, pool), pool, marker).rule(root)


class _Builder:
    """Makes the nodes of some rules."""

    def __init__(self, rules: Rules, pool: Pool, marker: Marker) -> None:
        self._rules = rules
        self._pool = pool
        self._marker = marker
        self._nullable = fixpoint(rules, self._is_nullable)
        self._unrolls: dict[Count, str] = {}
        self._circles = self._find_circles()
        self._made: dict[tuple[str, bool], Node] = {}
        self._pending: list[tuple[Rule, str, bool]] = []

    def rule(self, name: str) -> Node:
        """Give the node of a rule, with all that it leads to."""
        found = self._rule(name, is_solid=False)
        self._finish()
        return found

    def begin(self, circle: Circle, name: str, is_solid: bool) -> tuple[Row, ...]:
        """Give how a left-recursive rule begins, up to its first left corner."""
        found = tuple(self._begin(circle, name, is_solid))
        self._finish()
        return found

    def corner(self, circle: Circle, name: str, done: str) -> tuple[Row, ...]:
        """Give what may follow a text of `done` that a text of `name` begins with."""
        found = tuple(self._corner(circle, name, done))
        self._finish()
        return found

    def _finish(self) -> None:
        """Make the bodies of the rules that were met."""
        while self._pending:
            rule, name, is_solid = self._pending.pop()
            rows = self._solid_rows(name) if is_solid else map(self._row, self._rules[name])
            rule.body = self._pool.nodes.choice(*map(self._sequence, rows))

    def _begin(self, circle: Circle, name: str, is_solid: bool) -> Iterator[Row]:
        opened, closed = self._frame(circle)
        for member in circle.names:
            for first, rest, empties in self._solids(member):
                if not (isinstance(first, Call) and first.name in circle.names):
                    corner = self._pool.nodes.make(Corner, circle, name, member)
                    done = self._marker.done(member)
                    start = (*opened, *self._empty_row(empties), self._solid(first))
                    yield (*start, *self._row(rest), *done, corner)
        if name in self._nullable and not is_solid:
            yield (*opened, *self._marker.done(name), *closed)

    def _corner(self, circle: Circle, name: str, done: str) -> Iterator[Row]:
        for member in circle.names:
            for first, rest, empties in self._solids(member):
                if isinstance(first, Call) and first.name == done:
                    corner = self._pool.nodes.make(Corner, circle, name, member)
                    row = (*self._empty_row(empties), *self._row(rest))
                    yield (*row, *self._marker.done(member), corner)
        if done == name:
            yield self._frame(circle)[1]

    def _frame(self, circle: Circle) -> tuple[Row, Row]:
        """Give the marks between which a circle's rules are done."""
        if not any(map(self._marker.marks, circle.names)):
            return (), ()
        return self._marker.frame("open"), self._marker.frame("close")

    def _solids(self, name: str) -> Iterator[Solid]:
        """Give the options of a rule, each from a symbol on that takes text."""
        for row in self._rules[name]:
            for place, symbol in enumerate(row):
                yield symbol, row[place + 1 :], row[:place]
                if not self._is_nullable(symbol, self._nullable):
                    break

    def _empty_row(self, symbols: Symbols) -> Row:
        """Give the marks of symbols that take no text here."""
        names = (s.name for s in symbols if isinstance(s, Call | PartNode))
        return tuple(mark for name in names for mark in self._marker.around(name))

    def _row(self, symbols: Symbols) -> Row:
        """Give the nodes of some symbols."""
        nodes = (self._node(symbol) for symbol in symbols)
        return tuple(node for node in nodes if node is not None)

    def _node(self, symbol: Symbol) -> Node | None:
        match symbol:
            case Language():
                if symbol is self._pool.languages.empty:
                    return None
                return self._pool.nodes.terminal(self._pool.locals.start(symbol, "plain"))
            case Call(name):
                return self._rule(name, is_solid=False)
            case Count(item, low, high):
                node = self._node(item)
                return None if node is None else self._pool.nodes.times(node, low, high)
            case PartNode(name, node):
                return self._sequence(self._marker.around(name, node))

    def _solid(self, symbol: Symbol) -> Node:
        """Give the node of the texts of a symbol, the empty one left out."""
        languages, nodes = self._pool.languages, self._pool.nodes
        match symbol:
            case Language():
                some = languages.both((symbol, languages.repeat(languages.any, 1, None)))
                language = some if symbol.is_nullable else symbol
                return nodes.terminal(self._pool.locals.start(language, "plain"))
            case Call(name):
                return self._rule(name, is_solid=name in self._nullable)
            case Count(item, low, high):
                most = None if high is None else high - 1
                least = 0 if self._is_nullable(item, self._nullable) else max(low - 1, 0)
                return self._sequence((self._solid(item), *self._row((Count(item, least, most),))))
            case PartNode(name):
                return self._sequence(self._marker.around(name, self._solid_part(symbol)))

    def _solid_part(self, part: PartNode) -> Node:
        node = part.node
        if not part.is_nullable:
            return node
        if isinstance(node, Terminal) and node.start.language is not None:
            return self._solid(node.start.language)
        message = f"part {part.name}: it may be empty where a rule could begin with itself"
        raise RequestError("bad_grammar", f"ebnf: {message}; make it take some text")

    def _solid_rows(self, name: str) -> Iterator[Row]:
        for first, rest, empties in self._solids(name):
            yield (*self._empty_row(empties), self._solid(first), *self._row(rest))

    def _rule(self, name: str, is_solid: bool) -> Node:
        found = self._made.get((name, is_solid))
        if found is None:
            circle = self._circles.get(name)
            if circle is not None:
                found = self._pool.nodes.make(Begin, circle, name, is_solid)
            else:
                rule = Rule(name)
                self._pending.append((rule, name, is_solid))
                found = self._sequence(self._marker.around(name, rule))
            self._made[name, is_solid] = found
        return found

    def _sequence(self, row: Row) -> Node:
        return self._pool.nodes.sequence(*row)

    def _is_nullable(self, symbol: Symbol, names: set[str]) -> bool:
        match symbol:
            case Language():
                return symbol.is_nullable
            case Call(name):
                return name in names
            case Count(item, low):
                return low == 0 or self._is_nullable(item, names)
            case PartNode(is_nullable=is_nullable):
                return is_nullable

    def _find_circles(self) -> dict[str, Circle]:
        """Find the rules that begin with themselves, repeats at their beginnings taken apart."""
        circles = self._components()
        while self._take_apart(circles):
            self._nullable = fixpoint(self._rules, self._is_nullable)
            circles = self._components()
        return circles

    def _components(self) -> dict[str, Circle]:
        graph = {n: {_head(first) for first, *_ in self._solids(n)} - {""} for n in self._rules}
        found: dict[str, Circle] = {}
        for names in components(graph):
            if len(names) > 1 or any(name in graph[name] for name in names):
                found.update(dict.fromkeys(names, Circle(self, names)))
        return found

    def _take_apart(self, circles: dict[str, Circle]) -> bool:
        """Make rules of the repeats that a left-recursive rule begins with."""
        changed = False
        for name, circle in circles.items():
            for number, row in enumerate(self._rules[name]):
                for place, symbol in enumerate(row):
                    if isinstance(symbol, Count) and _head(symbol) in circle.names:
                        call = self._unrolled(symbol)
                        self._rules[name][number] = (*row[:place], call, *row[place + 1 :])
                        changed = True
                        break
                    if not self._is_nullable(symbol, self._nullable):
                        break
        return changed

    def _unrolled(self, count: Count) -> Call:
        """Give the rule of a repeat: nothing, or once and the repeat of the rest."""
        if count not in self._unrolls:
            if len(self._unrolls) > MAX_UNROLLED:
                message = f"ebnf: a repeat {{{count.low},{count.high}}} with left recursion inside"
                raise RequestError("grammar_budget", f"grammar too large: {message}")
            name = self._unrolls[count] = f".{len(self._rules)}"  # no name in a source
            high = None if count.high is None else count.high - 1
            once: Symbols = (count.item,)
            if high != 0:
                once = (count.item, Count(count.item, max(count.low - 1, 0), high))
            self._rules[name] = [once] if count.low else [once, ()]
        return Call(self._unrolls[count])


class Circle:
    """Rules that all may begin with each other."""

    def __init__(self, builder: _Builder, names: Sequence[str]) -> None:
        self.builder = builder
        self.names = names


class Begin:
    """A left-recursive rule; `is_solid`: without the empty text."""

    __slots__ = ("_circle", "_is_solid", "_name", "twin")

    def __init__(self, circle: Circle, name: str, is_solid: bool) -> None:
        self._circle, self._name, self._is_solid = circle, name, is_solid
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give how it begins."""
        return self._circle.builder.begin(self._circle, self._name, self._is_solid)


class Corner:
    """The rest of a left-recursive rule, after a text of the rule `done`."""

    __slots__ = ("_circle", "_done", "_name", "twin")

    def __init__(self, circle: Circle, name: str, done: str) -> None:
        self._circle, self._name, self._done = circle, name, done
        self.twin: Node = self

    def expand(self) -> tuple[Row, ...]:
        """Give what may follow."""
        return self._circle.builder.corner(self._circle, self._name, self._done)


def _head(symbol: Symbol) -> str:
    """Give the rule that a symbol begins with; "" if there is none."""
    while isinstance(symbol, Count):
        symbol = symbol.item
    return symbol.name if isinstance(symbol, Call) else ""
