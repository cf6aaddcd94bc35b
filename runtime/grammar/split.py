"""Where the named parts of a text lie: without a model, over single bytes."""

from __future__ import annotations

import functools
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ..errors import RequestError
from .budget import Budget
from .compiler import POOL_SIZE
from .compose import build
from .ebnf_reader import read
from .lark_load import END, LarkGrammar, load
from .mark import Marker
from .pool import Pool
from .readings import Reading, Readings, Span
from .spec import GrammarSpec
from .vocabulary import Vocabulary

TIMEOUT_S = 10.0
MAX_STATES = 200_000
NUM_KEPT = 64  # splitters
_NO_LIMIT = 1 << 40


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


@functools.lru_cache(NUM_KEPT)
def splitter(spec: GrammarSpec, names: frozenset[str]) -> Splitter:
    """Give the splitter of a grammar, made once. Raises: RequestError."""
    return Splitter(spec, names)


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

    Thread-safe. What it learns of a grammar it keeps, up to a limit.
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
            if self._pool.size > POOL_SIZE:
                self._begin()
            with self._pool.using(Budget(TIMEOUT_S, _NO_LIMIT)):
                reading = self._readings.read(data)
        if reading is None:
            return None
        return Split(data, tuple(self._all(reading)), reading.can_go_on)

    def _begin(self) -> None:
        self._pool = Pool(Vocabulary([bytes((byte,)) for byte in range(256)], (256,), 257))
        with self._pool.using(Budget(TIMEOUT_S, MAX_STATES)):
            marker = Marker(self._pool.nodes, frozenset(self._marked))
            node = build(self._spec, self._pool, marker)
            start = self._pool.pushdown.push(node, None)
            self._readings = Readings(self._pool.pushdown, start)

    def _all(self, reading: Reading) -> Iterator[Span]:
        """Give the spans that are asked for, those of Lark's rules included."""
        spans = iter(reading.spans)
        if self._lark is not None:
            spans = _reduced(self._lark, reading.spans)
        parts = {name for name, _ in self._spec.parts}
        return (s for s in spans if s.path[0] in self._names | parts or len(s.path) > 1)


def _rules(grammar: LarkGrammar) -> set[str]:
    return {name for actions in grammar.actions.values() for _, name in actions.reduces}


def _reduced(grammar: LarkGrammar, spans: Collection[Span]) -> Iterator[Span]:
    """Give the spans of terminals, and of the rules that lark's table makes of them."""
    stack = [(grammar.start_state, 0, 0)]  # the state, and the text that led there
    ended = 0
    for span in (*spans, Span((END,), -1, -1)):
        name = span.path[0]
        if len(span.path) > 1:
            yield span
            continue
        while name not in (actions := grammar.actions[stack[-1][0]]).shifts:
            if name == END and stack[-1][0] == grammar.end_state:
                return
            size, rule = next(key for key, names in actions.reduces.items() if name in names)
            start, end = (stack[-size][1], stack[-1][2]) if size else (ended, ended)
            del stack[len(stack) - size :]
            stack.append((grammar.actions[stack[-1][0]].shifts[rule], start, end))
            yield Span((rule,), start, end)
        yield span
        ended = span.end
        stack.append((actions.shifts[name], span.start, ended))
