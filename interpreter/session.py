"""One run inside the executor: its nodes, what they wait for, and what they gave."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..lang.graph import Node
from ..lang.ops import Gen, Input, RoleBegin, RoleEnd, Score, Select, Source, Text, Value
from ..lang.words import spell
from ..runtime.errors import RequestCode, RequestError
from ..runtime.sequence import Output, Request, ScoreRequest
from .backend import (
    Delta,
    Done,
    Failed,
    GenTokens,
    Listener,
    NodeEvent,
    NodeMeta,
    SessionConfig,
    Started,
)
from .branch import BranchText, TextCodec
from .calls import Arrival, Call, Calls
from .chat import ChatTemplate
from .foresight import Foresight
from .lowering import gen_request
from .outcome import failure_of, gen_outcome, gen_value, known_branch, select_outcome
from .scoring import Scoring, of_output, of_text, score_meta
from .seeds import Places
from .selection import prepare
from .states import NodeState, sources_of
from .turns import close_turn, open_turn

_log = logging.getLogger(__name__)
_NO_META = NodeMeta()


class ExecutorSession:
    """One run of one program. Every method is called on the executor's thread.

    A node is ready when its sources are done; ready nodes wait in a queue, so neither a
    long chain nor a wide fork recurses. Node states live as long as the session: later
    segments may point at them.
    """

    def __init__(
        self,
        config: SessionConfig,
        listener: Listener,
        calls: Calls,
        codec: TextCodec,
        chat: ChatTemplate,
    ) -> None:
        self._config = config
        self._listener = listener
        self._calls = calls
        self._codec = codec
        self._chat = chat
        self._states: dict[int, NodeState] = {}
        self._ready: deque[NodeState] = deque()
        self._places = Places(config.seed)
        self._foresight = Foresight(config.sampling, self._request_id)
        self._events: list[NodeEvent] = []
        self._is_closed = False

    def submit(self, nodes: Sequence[Node], known: Sequence[Done] = ()) -> None:
        """Add a segment; each of its nodes gets exactly one terminal event."""
        if self._is_closed:
            return
        self._foresight.add(nodes)
        done_of = {done.node: done for done in known}
        for node in nodes:
            self._add(node, done_of.get(node.id))
        self._advance()

    def cancel(self, nodes: Iterable[int]) -> None:
        """Stop these nodes and all that depend on them; idempotent."""
        if self._is_closed:
            return
        known = [self._states[node] for node in nodes if node in self._states]
        self._stop(known, "cancelled", "cancelled before it was done")
        self._advance()

    def close(self) -> None:
        """Stop everything, in silence; idempotent."""
        self._is_closed = True
        for state in self._states.values():
            if state.call is not None:
                self._calls.abort(state.call)
        self._states.clear()
        self._ready.clear()
        self._events.clear()

    def _add(self, node: Node, known: Done | None) -> None:
        if node.id in self._states:
            message = f"node {node.id} was submitted twice; each node has its own id"
            self._events.append(Failed(node.id, "invalid_request", message, node.id))
            return
        state = self._states[node.id] = NodeState(node, known=known)
        if isinstance(node.op, Gen):
            state.seed = self._places.next_seed(node.branch)
        elif isinstance(node.op, Select) and node.op.temperature:
            # Draws of their own, so that a select more changes no gen.
            derived = self._places.next_seed(f"{node.branch}:select")
            state.seed = derived if node.op.seed is None else node.op.seed
        for source_id in sources_of(node):
            source = self._states.get(source_id)
            if source is None or source is state:
                message = f"node {node.id} points at node {source_id}, which was not submitted"
                self._stop([state], "invalid_request", message)
                continue
            source.dependants.append(state)
            if source.failure is not None:
                cause = source.failure
                self._stop([state], cause.code, cause.message, cause.origin)
            state.num_waiting += source.status != "done"
        if state.num_waiting == 0:
            self._ready.append(state)

    def _advance(self) -> None:
        """Run what is ready, then give the listener what happened."""
        while self._ready:
            state = self._ready.popleft()
            if state.status != "waiting":
                continue
            try:
                self._run(state)
            except RequestError as e:
                self._fail(state, e.code, str(e))
            except Exception as e:
                # Text that no tokenizer takes must not take the other runs along.
                _log.exception("node %d of run %s", state.node.id, self._config.id)
                self._fail(state, "internal", f"{type(e).__name__}: {e}")
        if self._events:
            events, self._events = self._events, []
            self._listener(events)

    def _run(self, state: NodeState) -> None:
        node = state.node
        before = self._states[node.prev].branch if node.prev is not None else BranchText()
        match node.op:
            case Text(text):
                self._finish(state, before.add(text), text)
            case Value(Source(capture=str(capture))):
                message = f"the capture {capture!r} is to be read at the client, and sent as text"
                raise RequestError("invalid_request", message)
            case Value(source):
                value = self._states[source.node].value
                self._finish(state, before.add(value), value)
            case RoleBegin(role):
                self._finish(state, *open_turn(before, role, self._chat, self._codec))
            case RoleEnd(role):
                self._finish(state, *close_turn(before, role, self._codec))
            case Gen() | Select() | Score() if (known := state.known) is not None:
                branch = known_branch(node.op, known, before, self._codec)
                self._finish(state, branch, known.text, known.meta, value=known.value)
            case Gen():
                self._start_gen(state, node.op, before)
            case Select():
                self._start_select(state, node.op, before)
            case Score():
                self._start_score(state, node.op, before)
            case Input(name):
                message = f"the argument {name!r} has no value; run the graph with one"
                raise RequestError("invalid_request", message)

    def _start_gen(self, state: NodeState, op: Gen, before: BranchText) -> None:
        state.branch = self._codec.settle_prompt(before)
        assert state.branch.tokens is not None
        prompt = state.branch.tokens.all_ids()
        may_heal = self._codec.may_heal(before, int(prompt[-1]))
        request = gen_request(
            op, self._request_id(state.node.id), prompt, self._config.sampling, state.seed, may_heal
        )
        self._start(state, request, is_streaming=self._config.is_streaming)

    def _start_select(self, state: NodeState, op: Select, before: BranchText) -> None:
        state.selection = prepare(op, before, self._codec)
        request = state.selection.request(self._request_id(state.node.id))
        if request is None:  # the only choice is empty
            self._events.append(Started(state.node.id))
            outcome = select_outcome(state.selection, None, self._codec, state.seed)
            self._finish(state, *outcome)
        else:
            self._start(state, request, is_streaming=False)

    def _start_score(self, state: NodeState, op: Score, before: BranchText) -> None:
        state.branch, state.scoring = before, self._scoring(state.node, op, before)
        request = state.scoring.request(self._request_id(state.node.id))
        if request is None:
            self._events.append(Started(state.node.id))
            self._finish(state, before, "", score_meta(None))
        else:
            self._start(state, request, is_streaming=False)

    def _scoring(self, node: Node, op: Score, before: BranchText) -> Scoring:
        if op.source is None:
            return of_text(op.text, before, self._codec)
        source = self._states[op.source]
        if isinstance(source.node.op, Gen) and source.node.prev == node.prev:
            return of_output(before, source.branch, self._codec)
        return of_text(source.value, before, self._codec)

    def _start(
        self, state: NodeState, request: Request | ScoreRequest, *, is_streaming: bool
    ) -> None:
        state.status = "running"
        state.call = Call(request.id, state.node.id, is_streaming, self._receive)
        self._events.append(Started(state.node.id))
        self._calls.start(state.call, replace(request, hint=self._foresight.hint(state.node)))

    def _request_id(self, node: int) -> str:
        return f"{self._config.id}:{node}"

    def _receive(self, arrivals: Sequence[Arrival]) -> None:
        for arrival in arrivals:
            if arrival.call.is_live:
                self._take(self._states[arrival.call.node], arrival.call, arrival.last)
        if not self._is_closed:
            self._advance()

    def _take(self, state: NodeState, call: Call, output: Output | None) -> None:
        if call.is_streaming and (text := call.take_text()):
            self._events.append(Delta(state.node.id, text))
        if output is None:
            return
        call.is_live = False
        state.call = None
        if (failure := failure_of(output)) is not None:
            self._fail(state, *failure)
        elif state.selection is not None:
            chosen = select_outcome(state.selection, output, self._codec, state.seed)
            self._finish(state, *chosen)
        elif state.scoring is not None:
            self._finish(state, state.branch, "", score_meta(output))
        else:
            text = "".join(call.texts)
            written = gen_outcome(state.branch, text, output, self._codec)
            value = gen_value(state.node.op, self._config.sampling, text, output)
            self._finish(state, *written, value=value)

    def _finish(
        self,
        state: NodeState,
        branch: BranchText,
        text: str,
        meta: NodeMeta = _NO_META,
        tokens: GenTokens | None = None,
        value: str | None = None,
    ) -> None:
        state.status, state.branch, state.selection, state.scoring = "done", branch, None, None
        state.text, state.value = text, text if value is None else value
        told = tokens if self._config.keeps_tokens else None
        self._events.append(Done(state.node.id, text, meta, value, told))
        for dependant in state.dependants:
            dependant.num_waiting -= 1
            if dependant.num_waiting == 0:
                self._ready.append(dependant)

    def _fail(self, state: NodeState, code: RequestCode, message: str) -> None:
        self._stop([state], code, f"{spell(state.node.op)}: {message}")

    def _stop(
        self, states: Iterable[NodeState], code: str, message: str, origin: int | None = None
    ) -> None:
        """Fail these and all that depend on them, nearest first; those that are done stay so."""
        queue = deque((state, origin) for state in states)
        seen = {id(state) for state, _ in queue}
        while queue:
            state, cause = queue.popleft()
            if state.status in ("waiting", "running"):
                cause = state.node.id if cause is None else cause
                if state.call is not None:
                    self._calls.abort(state.call)
                    state.call = None
                state.status = "failed"
                state.failure = Failed(state.node.id, code, message, cause)
                self._events.append(state.failure)
            elif state.failure is not None:
                continue
            for dependant in state.dependants:
                if id(dependant) not in seen:
                    seen.add(id(dependant))
                    queue.append((dependant, cause))
