"""The rules of a grammar as rows of symbols; what is regular in them is one language each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .ebnf_reader import Alt, Body, Many, OneOf, Ref, Row, Text
from .language import Language
from .languages import Languages
from .mark import Marker
from .node import PartNode

MAX_DEPTH = 50  # of one language; what is nested deeper is made of nodes


@dataclass(frozen=True, slots=True)
class Call:
    """A rule."""

    name: str


@dataclass(frozen=True, slots=True)
class Count:
    """`low` to `high` times a symbol."""

    item: Symbol
    low: int
    high: int | None


Symbol: TypeAlias = Language | Call | Count | PartNode
Symbols: TypeAlias = tuple[Symbol, ...]
Rules: TypeAlias = dict[str, list[Symbols]]  # the options of each rule


def make_rules(
    rules: Mapping[str, Body], languages: Languages, parts: Mapping[str, PartNode], marker: Marker
) -> Rules:
    """Give the rules as symbols; groups that are not regular become rules of their own.

    `parts` are the grammars that rules name. What is marked stays a rule.
    """
    maker = _Maker(languages, parts, marker)
    graph = {name: {ref.name for ref in _refs(body)} - parts.keys() for name, body in rules.items()}
    for names in components(graph):
        maker.add(names, rules, graph)
    return maker.rules


def components(graph: Mapping[str, Collection[str]]) -> list[tuple[str, ...]]:
    """Give the strongly connected components of a graph, those first that others lead to.

    After: Tarjan 1972, without recursion.
    """
    found: list[tuple[str, ...]] = []
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    for root in graph:
        path = [(root, iter(graph[root]))] if root not in numbers else []
        while path:
            name, targets = path[-1]
            if name not in numbers:
                numbers[name] = lowest[name] = len(numbers)
                stack.append(name)
            for target in targets:
                if target not in numbers:
                    path.append((target, iter(graph[target])))
                    break
                if target in lowest:  # still open
                    lowest[name] = min(lowest[name], lowest[target])
            else:
                path.pop()
                if path:
                    parent = path[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[name])
                if lowest[name] == numbers[name]:
                    place = stack.index(name)
                    found.append(tuple(stack[place:]))
                    for member in stack[place:]:
                        del lowest[member]
                    del stack[place:]
    return found


def fixpoint(rules: Rules, holds: Callable[[Symbol, set[str]], bool]) -> set[str]:
    """Give the names of the rules of which some option has only symbols that hold."""
    found: set[str] = set()
    size = -1
    while len(found) > size:
        size = len(found)
        for name, options in rules.items():
            if name not in found and any(all(holds(s, found) for s in row) for row in options):
                found.add(name)
    return found


class _Maker:
    """Turns bodies into symbols, rule by rule, those first that others use."""

    def __init__(self, languages: Languages, parts: Mapping[str, PartNode], marker: Marker) -> None:
        self.rules: Rules = {}
        self._languages = languages
        self._parts = parts
        self._marker = marker
        self._regular: dict[str, tuple[Language, int]] = {}  # with the depth

    def add(
        self, names: Sequence[str], bodies: Mapping[str, Body], graph: Mapping[str, set[str]]
    ) -> None:
        """Add rules that all lead to each other, or one rule."""
        for name in names:
            found = None
            if len(names) == 1:
                find = self._loop if name in graph[name] else self._whole
                found = find(name, bodies[name])
            if found is not None:
                if not self._marker.marks(name):
                    self._regular[name] = found
                self.rules[name] = [(found[0],)]
            else:
                self.rules[name] = [self._symbols(name, row) for row in _options(bodies[name])]

    def _whole(self, name: str, body: Body) -> tuple[Language, int] | None:
        return self._language(body)

    def _loop(self, name: str, body: Body) -> tuple[Language, int] | None:
        """Give the language of a rule that uses itself at one end only: r = a r | b is a* b."""
        languages = self._languages
        again: dict[bool, list[Language]] = {False: [], True: []}  # by: itself at the end
        others: list[Language] = []
        deepest = 0
        for row in _options(body):
            at_end = bool(row) and _is_ref(row[-1], name)
            at_start = bool(row) and _is_ref(row[0], name)
            rest = row[:-1] if at_end else row[1:] if at_start else row
            found = self._language(Row(rest))
            if found is None:
                return None
            (again[at_end] if at_end or at_start else others).append(found[0])
            deepest = max(deepest, found[1] + 2)
        if all(again.values()) or deepest > MAX_DEPTH:
            return None
        (is_last,) = (at_end for at_end, found in again.items() if found)
        loop = languages.repeat(languages.union(again[is_last]), 0, None)
        once = languages.union(others)
        return languages.sequence((loop, once) if is_last else (once, loop)), deepest

    def _language(self, body: Body) -> tuple[Language, int] | None:
        """Give the language and its depth; None if it is not regular, or too deep."""
        languages = self._languages
        match body:
            case Text(text):
                return languages.word(text), 1
            case OneOf(ranges):
                return languages.chars(languages.sets.get(ranges)), 1
            case Ref(name):
                return self._regular.get(name)
            case Many(item, low, high):
                found = self._all((item,))
                return found and self._deeper(languages.repeat(found[0][0], low, high), found[1])
            case Row(items):
                found = self._all(items)
                return found and self._deeper(languages.sequence(found[0]), found[1])
            case Alt(options):
                found = self._all(options)
                return found and self._deeper(languages.union(found[0]), found[1])

    def _deeper(self, language: Language, depth: int) -> tuple[Language, int] | None:
        return (language, depth + 1) if depth < MAX_DEPTH else None

    def _all(self, bodies: Iterable[Body]) -> tuple[list[Language], int] | None:
        found = [self._language(body) for body in bodies]
        known = [f for f in found if f is not None]
        if len(known) < len(found):
            return None
        return [language for language, _ in known], max((d for _, d in known), default=0)

    def _symbols(self, name: str, row: Sequence[Body]) -> Symbols:
        """Give the symbols of a row; regular ones side by side become one."""
        found: list[Symbol] = []
        for body in row:
            symbol = self._symbol(name, body)
            if isinstance(symbol, Language) and found and isinstance(found[-1], Language):
                found[-1] = self._languages.concat(found[-1], symbol)
            else:
                found.append(symbol)
        return tuple(found)

    def _symbol(self, name: str, body: Body) -> Symbol:
        known = self._language(body)
        if known is not None:
            return known[0]
        match body:
            case Ref(other):
                return self._parts[other] if other in self._parts else Call(other)
            case Many(_, _, 0):
                return self._languages.empty
            case Many(item, low, high):
                return Count(self._symbol(name, item), low, high)
            case _:
                return self._group(name, body)

    def _group(self, name: str, body: Body) -> Call:
        group = f"{name}.{len(self.rules)}"  # no name in a source has a dot
        self.rules[group] = []
        rows = [self._symbols(name, row) for row in _options(body)]
        regular = [row[0] for row in rows if len(row) == 1 and isinstance(row[0], Language)]
        self.rules[group] = [row for row in rows if not (len(row) == 1 and row[0] in regular)]
        if regular:
            self.rules[group].append((self._languages.union(regular),))
        return Call(group)


def _options(body: Body) -> list[tuple[Body, ...]]:
    """Give the options of a body, each as a row."""
    match body:
        case Alt(options):
            return [row for option in options for row in _options(option)]
        case Row(items):
            return [items] if len(items) != 1 else _options(items[0])
        case Many(item, 0, 1):
            return [*_options(item), ()]
        case _:
            return [(body,)]


def _refs(body: Body) -> list[Ref]:
    found: list[Ref] = []
    pending = [body]
    while pending:
        match pending.pop():
            case Ref() as ref:
                found.append(ref)
            case Row(bodies) | Alt(bodies):
                pending.extend(bodies)
            case Many(item):
                pending.append(item)
            case _:
                pass
    return found


def _is_ref(body: Body, name: str) -> bool:
    return isinstance(body, Ref) and body.name == name
