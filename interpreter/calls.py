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
    """One request while it runs. `texts` is the engine thread's until the last output."""

    request_id: str
    node: int
    is_streaming: bool
    receive: Callable[[Sequence[Arrival]], None]
    is_live: bool = True
    texts: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Arrival:
    """An output of a call that is still wanted."""

    call: Call
    output: Output


class Calls:
    """All running calls of an executor.

    Outputs wait in an inbox until the executor's thread drains it, all that came since
    in one go: what the engine gave in one step reaches a run as one list.
    """

    def __init__(self, engine: EngineLike, post: Post) -> None:
        self._engine = engine
        self._post = post
        self._inbox: deque[Arrival] = deque()
        self._is_posted = False

    def start(self, call: Call, request: Request | ScoreRequest) -> None:
        """Submit the request of `call`; outputs come to `call.receive`, on the post's thread."""
        self._engine.submit(request, lambda output: self._arrive(call, output))

    def abort(self, call: Call) -> None:
        """Stop a call; nothing of it is received any more."""
        if call.is_live:
            call.is_live = False
            self._engine.abort(call.request_id)

    def _arrive(self, call: Call, output: Output) -> None:
        call.texts.append(output.text)
        if not call.is_live or (output.finish_reason is None and not call.is_streaming):
            return
        self._inbox.append(Arrival(call, output))
        # Racing with a drain is harmless: it lowers the flag before it empties the inbox,
        # so an output is either seen by that drain or posts another one.
        if not self._is_posted:
            self._is_posted = True
            self._post(self._drain)

    def _drain(self) -> None:
        self._is_posted = False
        by_receiver: dict[Callable[[Sequence[Arrival]], None], list[Arrival]] = {}
        while self._inbox:
            arrival = self._inbox.popleft()
            by_receiver.setdefault(arrival.call.receive, []).append(arrival)
        for receive, arrivals in by_receiver.items():
            receive(arrivals)
