"""An executor on an engine that does what the test says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plait.interpreter.backend import Done, Failed, NodeEvent, SessionConfig
from plait.interpreter.executor import Executor
from plait.lang.graph import Node
from plait.lang.ops import Op
from plait.runtime.model.interface import Model
from plait.runtime.model.scripted import CHATML, scripted_model
from plait.runtime.sequence import Output, Request, ScoreRequest


class ByHandEngine:
    """Keeps requests until the test answers them."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.requests: dict[str, Request | ScoreRequest] = {}
        self.sinks: dict[str, Callable[[Output], None]] = {}
        self.aborted: list[str] = []

    def submit(self, request: Request | ScoreRequest, sink: Callable[[Output], None]) -> None:
        assert request.id not in self.requests
        self.requests[request.id] = request
        self.sinks[request.id] = sink

    def abort(self, request_id: str) -> None:
        self.aborted.append(request_id)

    def prompt(self, request_id: str) -> list[int]:
        request = self.requests[request_id]
        assert isinstance(request, Request)
        prompt: list[int] = request.prompt.tolist()
        return prompt


class Bench:
    """An executor, its posted callbacks, and one open session.

    With `is_pausing` the callbacks that are to come later are kept, and the test runs them.
    """

    def __init__(
        self,
        *,
        template: str | None = CHATML,
        is_streaming: bool = False,
        is_pausing: bool = False,
        keeps_tokens: bool = False,
    ) -> None:
        self.engine = ByHandEngine(scripted_model(lambda text: "", num_blocks=4, template=template))
        self.posted: list[Callable[[], None]] = []
        self.lists: list[list[NodeEvent]] = []
        self.delayed: list[Callable[[], None]] = []
        later = (lambda _, call: self.delayed.append(call)) if is_pausing else None
        self.executor = Executor(self.engine, self.posted.append, later)
        config = SessionConfig("run", seed=7, is_streaming=is_streaming, keeps_tokens=keeps_tokens)
        self.session = self.executor.open(config, self.listen)

    def listen(self, events: Sequence[NodeEvent]) -> None:
        self.lists.append(list(events))

    @property
    def events(self) -> list[NodeEvent]:
        return [event for events in self.lists for event in events]

    def ends(self) -> dict[int, Done | Failed]:
        ends = [event for event in self.events if isinstance(event, Done | Failed)]
        assert len(ends) == len({event.node for event in ends}), "two terminal events"
        return {event.node: event for event in ends}

    def tell(self, node: int, text: str) -> None:
        self.engine.sinks[f"run:{node}"](Output(f"run:{node}", text=text))

    def answer(self, node: int, text: str, **changes: object) -> None:
        output = Output(
            f"run:{node}", text=text, finish_reason="stop", token_ids=tuple(text.encode())
        )
        self.engine.sinks[f"run:{node}"](output._replace(**changes))  # type: ignore[arg-type]

    def fail(self, node: int) -> None:
        self.answer(
            node, "", finish_reason="error", error_code="context_exceeded", error="9 > 8 tokens"
        )

    def run(self) -> None:
        while self.posted:
            self.posted.pop(0)()

    def pass_pause(self) -> None:
        self.delayed.pop(0)()


def chain(*ops: Op, first: int = 0, branch: str = "") -> list[Node]:
    return [
        Node(first + i, op, first + i - 1 if first + i else None, branch=branch)
        for i, op in enumerate(ops)
    ]
