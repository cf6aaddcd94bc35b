"""Requests on their way to the engine, outputs on their way back to the executor's thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ..runtime.sequence import Output, Request, ScoreRequest

if TYPE_CHECKING:
    from ..runtime.model.interface import Model

Post: TypeAlias = Callable[[Callable[[], None]], None]
Later: TypeAlias = Callable[[float, Callable[[], None]], object]

# Texts of a stream go together if they come closer than this, in seconds: a screen shows no
# more, and each message wakes four threads, on cores that compute the next token.
PAUSE_S = 1 / 30


class EngineLike(Protocol):
    """What an executor asks of an engine; runtime/loop.py's `EngineThread` has it."""

    @property
    def model(self) -> Model:
        """The model it serves."""
        ...

    def submit(self, request: Request | ScoreRequest, sink: Callable[[Output], None]) -> None:
        """Start a request. `sink` gets its outputs on the engine's thread; the last one has
        a finish reason, an error included, and comes exactly once."""
        ...

    def abort(self, request_id: str) -> None:
        """Stop a request, if it still runs."""
        ...


@dataclass(slots=True, eq=False)
class Call:
    """One request while it runs. The engine's thread adds to `texts`, the executor's takes."""

    request_id: str
    node: int
    is_streaming: bool
    receive: Callable[[Sequence[Arrival]], None]
    is_live: bool = True
    texts: list[str] = field(default_factory=list)
    num_taken: int = 0  # of the texts
    is_waiting: bool = False  # in the inbox: what comes now is taken with what is there

    def take_text(self) -> str:
        """Give the text that came since the last time."""
        num_texts = len(self.texts)
        new = "".join(self.texts[self.num_taken : num_texts])
        self.num_taken = num_texts
        return new


@dataclass(frozen=True, slots=True)
class Arrival:
    """New text of a call, or its last output."""

    call: Call
    last: Output | None


class Calls:
    """All running calls of an executor.

    Outputs wait in an inbox until the executor's thread drains it, all that came since
    in one go: what the engine gave in one step reaches a run as one list. With `later` texts
    wait for up to PAUSE_S after the list before; the first text of a call and an end never do.
    """

    def __init__(self, engine: EngineLike, post: Post, later: Later | None = None) -> None:
        self._engine = engine
        self._post = post
        self._later = later
        self._inbox: deque[Arrival] = deque()
        self._is_posted = False
        self._is_pausing = False

    def start(self, call: Call, request: Request | ScoreRequest) -> None:
        """Submit the request of `call`; outputs come to `call.receive`, on the post's thread."""
        self._engine.submit(request, lambda output: self._arrive(call, output))

    def abort(self, call: Call) -> None:
        """Stop a call; nothing of it is received any more."""
        if call.is_live:
            call.is_live = False
            self._engine.abort(call.request_id)

    def _arrive(self, call: Call, output: Output) -> None:
        """Note an output, on the engine's thread."""
        call.texts.append(output.text)
        is_last = output.finish_reason is not None
        is_urgent = is_last or len(call.texts) == 1
        if not call.is_live or not (is_last or call.is_streaming):
            return
        # A drain may run meanwhile, which is harmless: it lowers each flag before it looks at
        # what the flag stands for, so it sees this output, or this output posts another drain.
        if is_last or not call.is_waiting:
            call.is_waiting = True
            self._inbox.append(Arrival(call, output if is_last else None))
        if not self._is_posted and (is_urgent or not self._is_pausing):
            self._is_posted = True
            self._post(self._drain)

    def _drain(self) -> None:
        self._is_posted = False
        by_receiver: dict[Callable[[Sequence[Arrival]], None], list[Arrival]] = {}
        while self._inbox:
            arrival = self._inbox.popleft()
            arrival.call.is_waiting = False
            by_receiver.setdefault(arrival.call.receive, []).append(arrival)
        for receive, arrivals in by_receiver.items():
            receive(arrivals)
        if by_receiver and self._later is not None and not self._is_pausing:
            self._is_pausing = True
            self._later(PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._is_pausing = False
        if self._inbox:
            self._drain()
