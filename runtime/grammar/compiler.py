"""From a constraint as it was asked for to a grammar over the tokens."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

from ..errors import RequestError
from .budget import Budget
from .compose import build, is_text
from .disk import DiskFolder
from .matcher import PooledGrammar
from .node import Node
from .pool import Pool
from .spec import GrammarSpec
from .texts import build_choices
from .vocabulary import Vocabulary

CACHE_BYTES = 256 << 20
CACHE_ENTRIES = 1024
# Parts; about 200 MB. Python's garbage collector looks at all of them, which takes 0.3 s,
# and that counts as time of the step in which it happens.
POOL_SIZE = 200_000
PART_BYTES = 1000  # one part of a pool, about
MAX_SOURCE_LEN = 1_000_000  # characters; Python's parser cannot be interrupted


class GrammarCompiler:
    """Compiles constraints for one vocabulary, each once; failures are kept too.

    Thread-safe: calls for different constraints run side by side, those for one wait.
    `folder`, of the vocabulary's own masks, keeps some for later processes.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        timeout_s: float,
        max_states: int,
        folder: DiskFolder | None = None,
    ) -> None:
        self._vocabulary = vocabulary
        self._folder = folder
        self._timeout_s = timeout_s
        self._max_states = max_states
        self._lock = threading.Lock()
        self._pool = Pool(vocabulary, folder)
        self._known: OrderedDict[GrammarSpec, Future[PooledGrammar]] = OrderedDict()

    def compile(self, spec: GrammarSpec) -> PooledGrammar:
        """Give the grammar of `spec`, with the mask of its beginning computed.

        Raises: RequestError: bad_grammar with field, place and reason; grammar_budget
        naming the limit and the construct.
        """
        with self._lock:
            self._renew_pool()
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

    def _run(self, spec: GrammarSpec, future: Future[PooledGrammar]) -> None:
        try:
            future.set_result(self._compile(spec))
        except BaseException as e:  # who waits for it must hear of it, whatever it was
            future.set_exception(e)
        with self._lock:
            self._evict()

    def _compile(self, spec: GrammarSpec) -> PooledGrammar:
        if spec.prefix:
            return self._compile_prefixed(spec)
        if _source_len(spec) > MAX_SOURCE_LEN:
            message = f"{spec.kind}: longer than {MAX_SOURCE_LEN} characters"
            raise RequestError("grammar_budget", f"grammar too large: {message}")
        with self._lock:
            pool = self._pool
        return self._make(pool, lambda: _node(spec, pool))

    def _compile_prefixed(self, spec: GrammarSpec) -> PooledGrammar:
        """Put the prefix before the grammar without one, which is compiled at most once."""
        grammar = self.compile(replace(spec, prefix=b""))
        pool = grammar.pool

        def node() -> Node:
            prefix = pool.nodes.terminal(pool.locals.literal(spec.prefix))
            return pool.nodes.sequence(prefix, grammar.node)

        return self._make(pool, node, spec.prefix)

    def _make(
        self, pool: Pool, make_node: Callable[[], Node], prefix: bytes = b""
    ) -> PooledGrammar:
        """Make the grammar of a node, which is made within the budget of one compilation."""
        budget = Budget(self._timeout_s, self._max_states)
        with pool.using(budget, gives_way=True):
            num_before = pool.size
            node = make_node()
            start = pool.pushdown.closure(pool.pushdown.push(node, None))
            if not start.configs and not start.is_accepting:
                message = "no text matches the constraint, or no token spells one"
                raise RequestError("bad_grammar", message)
            pool.mask(start, budget)
            size_bytes = PART_BYTES * (pool.size - num_before)
        return PooledGrammar(pool, start, size_bytes, node, prefix)

    def _renew_pool(self) -> None:
        """Begin a fresh pool if this one grew too large; grammars in use keep theirs."""
        if self._pool.size > POOL_SIZE:
            self._pool = Pool(self._vocabulary, self._folder)
            self._known.clear()

    def _evict(self) -> None:
        """Drop the grammars least recently asked for while all are too large together."""
        sizes = {spec: _size(future) for spec, future in self._known.items() if future.done()}
        total = sum(sizes.values())
        for spec, size in list(sizes.items())[:-1]:
            if total <= CACHE_BYTES and len(self._known) <= CACHE_ENTRIES:
                return
            del self._known[spec]
            total -= size


def _node(spec: GrammarSpec, pool: Pool) -> Node:
    """Make the node of a constraint and its stop strings."""
    node = build(spec, pool)
    if not spec.stops:
        return node
    stops = build_choices(spec.stops, pool, "stop")
    return pool.nodes.sequence(node, pool.nodes.times(stops, 0, 1))


def _size(future: Future[PooledGrammar]) -> int:
    return 0 if future.exception() is not None else future.result().size_bytes


def _source_len(spec: GrammarSpec) -> int:
    own = sum(len(text) for text in spec.source if is_text(text))
    return own + sum(_source_len(part) for _, part in spec.parts)
