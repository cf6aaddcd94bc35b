"""Where the named parts of a text lie: without a model, over single bytes."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import RequestError
from .budget import Budget
from .compose import build
from .ebnf_reader import read
from .lark_load import END, Actions, LarkGrammar, load
from .mark import Marker
from .plain import MAX_STATES, NO_LIMIT, TIMEOUT_S, byte_vocabulary
from .pool import Pool
from .readings import Reading, Readings, Span
from .spec import GrammarSpec

MAX_PARTS = 100_000  # of all splitters that are kept; about 100 MB
MAX_LEARNED = 20_000  # that one keeps beside those of its grammar


@dataclass(frozen=True, slots=True)
class Split:
    """A text with what was found in it, that first which ends first.

    `can_go_on`: a longer text that begins with this one is one of the grammar, too.
    """

    data: bytes
    spans: tuple[Span, ...]
    can_go_on: bool

    def texts(self, *path: str) -> Iterator[str]:
        """Give each text of a part; of a part in a part, with a `path` of several names."""
        return (self.data[s.start : s.end].decode() for s in self.spans if s.path == path)

    def last(self, name: str) -> str | None:
        """Give the text of a name that ends last; None if there is none."""
        last = next((s for s in reversed(self.spans) if s.path == (name,)), None)
        return None if last is None else self.data[last.start : last.end].decode()


def splitter(spec: GrammarSpec, names: frozenset[str]) -> Splitter:
    """Give the splitter of a grammar from those of this process. Raises: RequestError."""
    return _SPLITTERS.get(spec, names)


def capturable(spec: GrammarSpec) -> Collection[str]:
    """Give the names that a grammar in Lark or EBNF has for its parts. Raises: RequestError."""
    parts = [name for name, _ in spec.parts]
    if spec.kind == "ebnf":
        try:
            return dict.fromkeys((*read(spec.source[0], parts), *parts))
        except RecursionError as e:
            message = "grammar too large: the EBNF grammar is nested too deeply"
            raise RequestError("grammar_budget", message) from e
    grammar = load(spec.source[0], parts)
    names = (*_rules(grammar), *(grammar.terminals.keys() - grammar.ignored), *parts)
    return sorted({name for name in names if not name.startswith(("__", "$"))})


class Splitter:
    """Splits texts of one grammar by the parts at every depth, and by some of its own names.

    Thread-safe. What it learns of a grammar it keeps for the next text, up to a limit; past
    that it begins again.
    """

    def __init__(self, spec: GrammarSpec, names: frozenset[str]) -> None:
        self._spec = spec
        self._names = names
        self._lock = threading.Lock()
        self._lark: LarkGrammar | None = None
        marked = names | {name for name, _ in spec.parts}
        if spec.kind == "lark" and names:
            self._lark = load(spec.source[0], [name for name, _ in spec.parts])
            marked |= self._lark.terminals.keys()
        self._marked = marked
        self._begin()

    def split(self, text: str) -> Split | None:
        """Split a text; None if, as a whole, it is none of the grammar.

        Raises: RequestError (grammar_budget).
        """
        try:
            data = text.encode()
        except UnicodeEncodeError:  # a lone surrogate
            return None
        with self._lock:
            try:
                with self._pool.using(Budget(TIMEOUT_S, NO_LIMIT)):
                    reading = self._readings.read(data)
            finally:
                self._forget()
        if reading is None:
            return None
        return Split(data, tuple(self._all(reading)), reading.can_go_on)

    @property
    def size(self) -> int:
        """Count the parts that are kept: of automata, and of readings."""
        return self._pool.size + len(self._readings)

    def _forget(self) -> None:
        """Begin again if too much was learned; where that fails, after the next text."""
        if self.size > self._most:
            with contextlib.suppress(RequestError):
                self._begin()

    def _begin(self) -> None:
        """Make the grammar anew. If that raises, all stays as it was."""
        pool = Pool(byte_vocabulary())
        with pool.using(Budget(TIMEOUT_S, MAX_STATES)):
            node = build(self._spec, pool, Marker(pool.nodes, frozenset(self._marked)))
            readings = Readings(pool.pushdown, pool.pushdown.push(node, None))
        self._pool, self._readings = pool, readings
        self._most = self.size + MAX_LEARNED

    def _all(self, reading: Reading) -> Iterator[Span]:
        """Give the spans that are asked for, those of Lark's rules included."""
        spans = iter(reading.spans)
        if self._lark is not None:
            spans = _reduced(self._lark, reading.spans)
        parts = {name for name, _ in self._spec.parts}
        return (s for s in spans if s.path[0] in self._names | parts or len(s.path) > 1)


class Splitters:
    """The splitters last asked for, as many as are small enough together. Thread-safe."""

    def __init__(self, max_parts: int) -> None:
        self._max_parts = max_parts
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[GrammarSpec, frozenset[str]], Splitter] = OrderedDict()

    def get(self, spec: GrammarSpec, names: frozenset[str]) -> Splitter:
        """Give a splitter; a new one only if it is not kept. Raises: RequestError."""
        with self._lock:
            found = self._known.get((spec, names))
        found = found or Splitter(spec, names)  # not under the lock: it may take seconds
        with self._lock:
            self._known[spec, names] = found
            self._known.move_to_end((spec, names))
            sizes = {key: each.size for key, each in self._known.items()}
            total = sum(sizes.values())
            for key in list(sizes)[:-1]:
                if total <= self._max_parts:
                    break
                del self._known[key]
                total -= sizes[key]
        return found


_SPLITTERS = Splitters(MAX_PARTS)


def _rules(grammar: LarkGrammar) -> set[str]:
    return {name for actions in grammar.actions.values() for _, name in actions.reduces}


class _Entry(NamedTuple):
    """A state on the parser's stack, and the text of the symbol that led there."""

    state: int
    start: int
    end: int


class _Reduction(NamedTuple):
    """The rule that the table makes of the last entries of the stack, so many."""

    size: int
    rule: str


def _reduced(grammar: LarkGrammar, spans: Collection[Span]) -> Iterator[Span]:
    """Give the spans of terminals, and of the rules that lark's table makes of them.

    This is lark's LALR(1) parser, run on terminals that are known: those of the reading.
    """
    stack = [_Entry(grammar.start_state, 0, 0)]
    ended = 0  # where the last terminal did
    for span in (*spans, Span((END,), -1, -1)):
        name = span.path[0]
        if len(span.path) > 1:
            yield span
            continue
        while name not in (actions := grammar.actions[stack[-1].state]).shifts:
            if name == END and stack[-1].state == grammar.end_state:
                return
            size, rule = _reduction(actions, name)
            start, end = (stack[-size].start, stack[-1].end) if size else (ended, ended)
            del stack[len(stack) - size :]
            stack.append(_Entry(grammar.actions[stack[-1].state].shifts[rule], start, end))
            yield Span((rule,), start, end)
        yield span
        ended = span.end
        stack.append(_Entry(actions.shifts[name], span.start, ended))


def _reduction(actions: Actions, name: str) -> _Reduction:
    """Give what is reduced before a terminal: one, since the table has no conflicts."""
    return next(_Reduction(*key) for key, names in actions.reduces.items() if name in names)
