"""From a constraint as it was asked for to a grammar over the tokens."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future

from ..errors import RequestError
from .automaton import Automaton
from .budget import Budget
from .choices import build_choices
from .matcher import AutomatonGrammar
from .positions import Positions
from .regex import parse
from .spec import CompiledGrammar, GrammarSpec
from .utf8 import ByteClasses
from .vocabulary import Vocabulary

CACHE_BYTES = 256 << 20
CACHE_ENTRIES = 1024
MAX_SOURCE_LEN = 1_000_000  # characters; Python's parser cannot be interrupted


class GrammarCompiler:
    """Compiles constraints for one vocabulary, each once; failures are kept too.

    Thread-safe: calls for different constraints run side by side, those for one wait.
    """

    def __init__(self, vocabulary: Vocabulary, timeout_s: float, max_states: int) -> None:
        self._vocabulary = vocabulary
        self._timeout_s = timeout_s
        self._max_states = max_states
        self._lock = threading.Lock()
        self._known: OrderedDict[GrammarSpec, Future[CompiledGrammar]] = OrderedDict()

    def compile(self, spec: GrammarSpec) -> CompiledGrammar:
        """Give the grammar of `spec`, with the mask of its beginning computed.

        Raises: RequestError: bad_grammar with field, place and reason; grammar_budget
        naming the limit and the construct.
        """
        with self._lock:
            future = self._known.get(spec)
            is_mine = future is None
            if future is None:
                future = self._known[spec] = Future()
            self._known.move_to_end(spec)
        if is_mine:
            self._run(spec, future)
        error = future.exception()
        if isinstance(error, RequestError):
            raise RequestError(error.code, str(error))  # a new one: the kept one has no caller
        return future.result()

    def _run(self, spec: GrammarSpec, future: Future[CompiledGrammar]) -> None:
        try:
            future.set_result(self._compile(spec))
        except BaseException as e:  # who waits for it must hear of it, whatever it was
            future.set_exception(e)
        with self._lock:
            self._evict()

    def _compile(self, spec: GrammarSpec) -> CompiledGrammar:
        if sum(map(len, filter(_is_text, spec.source))) > MAX_SOURCE_LEN:
            message = f"{spec.kind}: longer than {MAX_SOURCE_LEN} characters"
            raise RequestError("grammar_budget", f"grammar too large: {message}")
        budget = Budget(self._timeout_s, self._max_states)
        classes = ByteClasses(self._vocabulary.spellable)
        positions = Positions(classes, budget, self._vocabulary.longest)
        start = positions.add("the constraint")
        finals = _build(spec, positions, start)
        finals += _build_stops(spec.stops, positions, finals)
        automaton = Automaton(positions, positions.close(start, finals))
        grammar = AutomatonGrammar(automaton, self._vocabulary)
        grammar.mask(automaton.start, budget)
        return grammar

    def _evict(self) -> None:
        """Drop the grammars least recently asked for while all are too large together."""
        sizes = {spec: _size(future) for spec, future in self._known.items() if future.done()}
        total = sum(sizes.values())
        for spec, size in list(sizes.items())[:-1]:
            if total <= CACHE_BYTES and len(self._known) <= CACHE_ENTRIES:
                return
            del self._known[spec]
            total -= size


def _build(spec: GrammarSpec, positions: Positions, start: int) -> list[int]:
    """Add what `spec` asks for behind `start`; give the positions at which it is whole."""
    match spec.kind:
        case "choices":
            return build_choices(spec.source, positions, start)
        case "regex":
            if len(spec.source) != 1 or not _is_text(spec.source[0]):
                message = f"regex must be one text, not {spec.source!r}"
                raise RequestError("bad_grammar", message)
            try:
                return [positions.build(parse(spec.source[0]), start)]
            except RecursionError as e:
                message = "grammar too large: the regex is nested too deeply"
                raise RequestError("grammar_budget", message) from e


def _build_stops(stops: tuple[str, ...], positions: Positions, finals: list[int]) -> list[int]:
    """Let a stop string follow each whole text; give the positions behind it."""
    if not stops:
        return []
    border = positions.add("the stop strings")
    for final in finals:
        positions.jump(final, border)
    return build_choices(stops, positions, border, "stop")


def _size(future: Future[CompiledGrammar]) -> int:
    return 0 if future.exception() is not None else future.result().size_bytes


def _is_text(source: object) -> bool:
    return isinstance(source, str)
