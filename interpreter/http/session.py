"""One run over HTTP: a task for each node, which waits for its sources."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...lang.graph import Node
from ...lang.ops import Gen, Input, RoleBegin, RoleEnd, Score, Select, Source, Text, Value
from ...lang.words import spell
from ...runtime.errors import RequestError
from ..backend import (
    Delta,
    Done,
    Failed,
    Listener,
    NodeEvent,
    NodeMeta,
    SessionConfig,
    Started,
)
from ..seeds import place_seed
from ..states import sources_of
from .faults import ServerFault
from .talk import Step, Talk

_log = logging.getLogger(__name__)
Say: TypeAlias = Callable[[str], None]  # new text of an answer
Answer: TypeAlias = Callable[
    [Gen | Select, Talk, SessionConfig, int, Say], Awaitable[tuple[str, NodeMeta]]
]


@dataclass(slots=True, eq=False)
class _State:
    """A node: the task that runs it, and how it ended."""

    node: Node
    end: asyncio.Future[Step | Failed]
    seed: int = 0
    known: Done | None = None
    task: asyncio.Task[None] | None = None


class TextSession:
    """One run of one program. Every method is called on the loop's thread."""

    def __init__(
        self, config: SessionConfig, listener: Listener, start: Talk, answer: Answer
    ) -> None:
        self._config = config
        self._listener = listener
        self._start = start
        self._answer = answer
        self._states: dict[int, _State] = {}
        self._num_gens: dict[str, int] = {}  # by branch
        self._is_closed = False

    def submit(self, nodes: Sequence[Node], known: Sequence[Done] = ()) -> None:
        """Add a segment; each of its nodes gets exactly one terminal event."""
        if self._is_closed:
            return
        done_of = {done.node: done for done in known}
        for node in nodes:
            if node.id in self._states:
                message = f"node {node.id} was submitted twice; each node has its own id"
                self._tell(Failed(node.id, "invalid_request", message, node.id))
                continue
            loop = asyncio.get_running_loop()
            state = _State(node, loop.create_future(), known=done_of.get(node.id))
            self._states[node.id] = state
            if isinstance(node.op, Gen):
                ordinal = self._num_gens.get(node.branch, 0)
                self._num_gens[node.branch] = ordinal + 1
                state.seed = place_seed(self._config.seed, node.branch, ordinal)
            state.task = loop.create_task(self._run(state))

    def cancel(self, nodes: Iterable[int]) -> None:
        """Stop these nodes and all that depend on them; idempotent."""
        for state in [self._states[node] for node in nodes if node in self._states]:
            if not state.end.done():
                self._fail(state, "cancelled", "cancelled before it was done")
                if state.task is not None:
                    state.task.cancel()

    def close(self) -> None:
        """Stop everything, in silence; idempotent."""
        self._is_closed = True
        for state in self._states.values():
            if state.task is not None:
                state.task.cancel()
        self._states.clear()

    async def _run(self, state: _State) -> None:
        try:
            failure = await self._sources(state)
            if failure is not None:
                self._end(state, failure)
                return
            step = await self._step(state)
            self._end(state, step)
        except (RequestError, ServerFault) as error:
            self._fail(state, error.code, str(error))
        except Exception as error:
            # What one node cannot do must not take the other runs along.
            _log.error("node %d failed: %s", state.node.id, type(error).__name__)
            self._fail(state, "internal", f"{type(error).__name__}: {error}")

    async def _sources(self, state: _State) -> Failed | None:
        """Wait for what the node reads; give the failure that it inherits."""
        node = state.node
        for source_id in sources_of(node):
            source = self._states.get(source_id)
            if source is None or source is state:
                message = f"node {node.id} points at node {source_id}, which was not submitted"
                return Failed(node.id, "invalid_request", message, node.id)
            # Shielded: one node's cancellation must not end the source that others wait for.
            end = await asyncio.shield(source.end)
            if isinstance(end, Failed):
                return Failed(node.id, end.code, end.message, end.origin)
        return None

    async def _step(self, state: _State) -> Step:
        node = state.node
        before = self._start if node.prev is None else self._made(node.prev).talk
        match node.op:
            case Text(text):
                return Step(before.add(text), text)
            case Value(Source(capture=str(capture))):
                message = f"the capture {capture!r} is to be read at the client, and sent as text"
                raise RequestError("invalid_request", message)
            case Value(source):
                value = self._made(source.node).text
                return Step(before.add(value), value)
            case RoleBegin(role):
                return Step(before.open(role))
            case RoleEnd(role):
                return Step(before.close(role))
            case Gen() | Select() if state.known is not None:
                return Step(before.add(state.known.text), state.known.text, state.known.meta)
            case Gen() | Select():
                return await self._ask(state, node.op, before)
            case Score():
                message = "score: the OpenAI API gives no log-probabilities of a given text"
                raise RequestError("bad_grammar", message)
            case Input(name):
                message = f"the argument {name!r} has no value; run the graph with one"
                raise RequestError("invalid_request", message)

    async def _ask(self, state: _State, op: Gen | Select, before: Talk) -> Step:
        self._tell(Started(state.node.id))

        def say(text: str) -> None:
            if not state.end.done():
                self._tell(Delta(state.node.id, text))

        text, meta = await self._answer(op, before, self._config, state.seed, say)
        return Step(before.add(text), text, meta)

    def _made(self, node: int) -> Step:
        end = self._states[node].end.result()
        assert isinstance(end, Step)
        return end

    def _fail(self, state: _State, code: str, message: str) -> None:
        told = f"{spell(state.node.op)}: {message}"
        self._end(state, Failed(state.node.id, code, told, state.node.id))

    def _end(self, state: _State, end: Step | Failed) -> None:
        if state.end.done():
            return
        state.end.set_result(end)
        match end:
            case Failed():
                self._tell(end)
            case Step(_, text, meta):
                self._tell(Done(state.node.id, text, meta))

    def _tell(self, event: NodeEvent) -> None:
        if not self._is_closed:
            self._listener([event])
