"""What lark would write out of a grammar: instances of templates, products, regexes.

Each can be endless, or double with every line. Counted here before lark does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from ..errors import RequestError

if TYPE_CHECKING:
    from lark import Tree
    from lark.load_grammar import Grammar

MAX_INSTANCES = 1000  # of templates
MAX_NAME_LEN = 10_000  # characters of an instance's name, which holds those of its arguments
MAX_SYMBOLS = 100_000  # of all alternatives; lark multiplies out what stands side by side
MAX_REGEX_LEN = 200_000  # characters of all terminals; lark writes one into another
IMPORTED_LEN = 100  # characters of a terminal of lark's own, about
MANY_REPEATS = 50  # from here on lark makes rules for a repeat,
MAX_FACTOR = 5  # each of so many parts at most

Value: TypeAlias = "tuple[object, int]"  # what it is, how long lark's name of it is
Size: TypeAlias = tuple[int, int]  # alternatives, and the symbols of all
NOTHING: Size = (1, 0)


def check_rules(grammar: Grammar) -> None:
    """Refuse rules and templates that lark is too long at. Raises: RequestError."""
    _Instances(grammar).check()


def check_terminals(written: Tree[object]) -> None:
    """Refuse regexes that are too long, as each use of a terminal is written out.

    Raises: RequestError (bad_grammar for a terminal in itself, grammar_budget).
    """
    from lark.grammar import Terminal

    lengths: dict[str, int] = {}
    uses: dict[str, list[str]] = {}
    for each in written.find_data("term"):
        name = str(each.children[0])
        words = list(each.scan_values(lambda _: True))
        used = [str(word.name) for word in words if isinstance(word, Terminal)]
        uses.setdefault(name, []).extend(used)
        lengths[name] = lengths.get(name, 0) + sum(len(str(word)) for word in words)
    known: dict[str, int] = {}
    total = 0
    for name in uses:
        total += _length(name, lengths, uses, known)
        if total > MAX_REGEX_LEN:
            reason = f"written out, all regexes are longer than {MAX_REGEX_LEN} characters"
            _refuse(f"terminal {name}: {reason}")


def _length(
    name: str, lengths: Mapping[str, int], uses: Mapping[str, list[str]], known: dict[str, int]
) -> int:
    if name not in uses:
        return IMPORTED_LEN
    if name not in known:
        known[name] = -1
        inner = sum(_length(used, lengths, uses, known) for used in uses[name])
        known[name] = lengths[name] + inner
    elif known[name] < 0:
        message = f"lark: terminal {name}: it is part of itself, which only rules can be"
        raise RequestError("bad_grammar", message)
    return known[name]


class _Instances:
    """Walks through the instances of templates that a grammar comes to."""

    def __init__(self, grammar: Grammar) -> None:
        self._rules = {str(n): (list(p), tree) for n, p, tree, _ in grammar.rule_defs if tree}
        self._made: dict[tuple[str, tuple[object, ...]], int] = {}
        self._pending: list[tuple[str, Tree[object], dict[str, Value]]] = []
        self._num_symbols = 0

    def check(self) -> None:
        """Raise RequestError (grammar_budget) if there is too much of anything."""
        rules = self._rules.items()
        self._pending += [(name, tree, {}) for name, (params, tree) in rules if not params]
        while self._pending:
            name, tree, known = self._pending.pop()
            for use in tree.find_data("template_usage"):
                self._value(use, known)
            self._num_symbols += self._size(tree, name)[1]
            if self._num_symbols > MAX_SYMBOLS:
                _refuse_size(name)

    def _value(self, item: object, known: Mapping[str, Value]) -> Value:
        """Give what an argument, or a use of a template, stands for."""
        from lark import Tree
        from lark.grammar import Symbol

        if isinstance(item, Symbol):
            name = str(item.name)
            return known.get(name, (name, len(name)))
        if not isinstance(item, Tree):
            return item, len(str(item))
        if item.data == "value" and len(item.children) == 1:
            return self._value(item.children[0], known)
        if item.data != "template_usage":
            return item, sum(len(str(child)) for child in item.children)
        args = [self._value(child, known) for child in item.children[1:]]
        template, _ = self._value(item.children[0], known)
        return self._use(str(template), args)

    def _use(self, name: str, args: Sequence[Value]) -> Value:
        length = len(name) + sum(1 + size for _, size in args) + 1
        key = name, tuple(what for what, _ in args)
        number = self._made.get(key)
        if number is None:
            number = self._made[key] = len(self._made)
            if len(self._made) > MAX_INSTANCES or length > MAX_NAME_LEN:
                reason = f"its uses do not end, or come to more than {MAX_INSTANCES} instances"
                _refuse(f"template {name}: {reason}, or to arguments that are too long")
            params, tree = self._rules.get(name, ((), None))
            if tree is not None and len(params) == len(args):
                self._pending.append((name, tree, dict(zip(params, args, strict=True))))
        return number, length

    def _size(self, item: object, name: str) -> Size:
        """Give what lark writes for a part of a rule, or for a word of it."""
        from lark import Tree

        if not isinstance(item, Tree):
            return 1, 1
        inner = item.children if item.data != "alias" else item.children[:1]
        match item.data:
            case "expansions" | "alias":
                size = _either(self._size(child, name) for child in inner)
            case "expansion":
                size = _times(self._size(child, name) for child in inner)
            case "maybe":
                size = _either((self._size(inner[0], name), NOTHING))
            case "expr":
                size = self._repeated(item, name)
            case _:
                return 1, 1
        if size[1] > MAX_SYMBOLS:
            _refuse_size(name)
        return size

    def _repeated(self, item: Tree[object], name: str) -> Size:
        once = self._size(item.children[0], name)
        op, *numbers = (str(child) for child in item.children[1:])
        if op == "?":
            return _either((once, NOTHING))
        if op != "~":  # a rule of its own: once, and once more after itself
            self._num_symbols += 2 * once[1] + once[0]
            return (1, 1) if op == "+" else (2, 1)
        low, high = int(numbers[0]), int(numbers[-1])
        if high >= MANY_REPEATS:
            low, high = 0, MAX_FACTOR
        return _either(_times([once] * num) for num in range(low, high + 1))


def _either(sizes: Iterable[Size]) -> Size:
    counts, lengths = zip(*sizes, strict=True)
    return sum(counts), sum(lengths)


def _times(sizes: Iterable[Size]) -> Size:
    """Multiply out what stands side by side; not much further than the limit."""
    count, length = NOTHING
    for more, more_length in sizes:
        count, length = count * more, count * more_length + length * more
        if length > MAX_SYMBOLS:
            break
    return count, length


def _refuse_size(name: str) -> NoReturn:
    reason = f"lark writes out alternatives of more than {MAX_SYMBOLS} symbols; use more rules"
    _refuse(f"rule {name}: {reason}")


def _refuse(reason: str) -> NoReturn:
    raise RequestError("grammar_budget", f"grammar too large: lark: {reason}")
