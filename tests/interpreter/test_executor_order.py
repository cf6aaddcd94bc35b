"""Whatever order things happen in: one end a node, and the same end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from plait.interpreter.backend import Done, Failed, NodeEvent, SessionConfig
from plait.interpreter.executor import Executor
from plait.lang.graph import Node
from plait.lang.ops import Gen, Op, Source, Text, Value
from plait.runtime.model.scripted import scripted_model
from plait.runtime.sequence import Output, Request, ScoreRequest


class Engine:
    """Answers each prompt with a text that depends on it alone, when it is told to."""

    def __init__(self) -> None:
        self.model = scripted_model(lambda text: "", num_blocks=1)
        self.running: dict[str, tuple[str, Callable[[Output], None]]] = {}

    def submit(self, request: Request | ScoreRequest, sink: Callable[[Output], None]) -> None:
        assert isinstance(request, Request)
        prompt = bytes(token_id for token_id in request.prompt.tolist() if token_id < 256)
        self.running[request.id] = (prompt.decode(), sink)

    def abort(self, request_id: str) -> None:
        if request_id not in self.running:
            return  # its last output is on its way
        _, sink = self.running.pop(request_id)
        sink(Output(request_id, finish_reason="cancelled", error_code="cancelled"))

    def answer(self, request_id: str) -> None:
        prompt, sink = self.running.pop(request_id)
        text = f"<{len(prompt)}{prompt[-1:]}>"
        if len(prompt) % 7 == 3:
            error = Output(
                request_id, finish_reason="error", error_code="pool_exceeded", error=text
            )
            sink(error)
        else:
            ids = tuple(text.encode())
            sink(Output(request_id, text=text, token_ids=ids, finish_reason="stop"))


@st.composite
def programs(draw: st.DrawFn) -> list[Node]:
    """Draw nodes whose edges point back anywhere."""
    nodes: list[Node] = []
    for id in range(draw(st.integers(1, 25))):
        earlier = st.integers(0, id - 1) if id else st.nothing()
        prev = draw(st.none() | earlier)
        ops: list[Op] = [Text("a"), Text("bc"), Gen(f"g{id}")]
        op = draw(st.sampled_from(ops))
        if id and draw(st.booleans()):
            op = Value(Source(draw(earlier)))
        reads = (op.source.node,) if isinstance(op, Value) else ()
        nodes.append(Node(id, op, prev, reads))
    return nodes


def ends_of(events: Sequence[NodeEvent]) -> dict[int, Done | Failed]:
    ends = [event for event in events if isinstance(event, Done | Failed)]
    assert len(ends) == len({end.node for end in ends}), "two ends of one node"
    return {end.node: end for end in ends}


def whole(nodes: Sequence[Node]) -> dict[int, Done | Failed]:
    """Run a program in one segment, everything in the order of submission."""
    engine = Engine()
    posted: list[Callable[[], None]] = []
    events: list[NodeEvent] = []
    session = Executor(engine, posted.append).open(SessionConfig("r", seed=0), events.extend)
    session.submit(nodes)
    while engine.running or posted:
        if posted:
            posted.pop(0)()
        else:
            engine.answer(next(iter(engine.running)))
    return ends_of(events)


@settings(derandomize=True, max_examples=35, deadline=None)
@given(nodes=programs(), data=st.data())
def test_any_order_and_any_cut_gives_the_same_ends(nodes: list[Node], data: st.DataObject) -> None:
    engine = Engine()
    posted: list[Callable[[], None]] = []
    events: list[NodeEvent] = []
    session = Executor(engine, posted.append).open(SessionConfig("r", seed=0), events.extend)
    left, cancelled = list(nodes), set[int]()
    while left or engine.running or posted:
        acts = ["submit"] * bool(left) + ["answer"] * bool(engine.running) + ["post"] * bool(posted)
        match data.draw(st.sampled_from([*acts, "cancel"] if len(cancelled) < 2 else acts)):
            case "submit":
                count = data.draw(st.integers(1, len(left)))
                session.submit(left[:count])
                del left[:count]
            case "answer":
                engine.answer(data.draw(st.sampled_from(sorted(engine.running))))
            case "post":
                posted.pop(0)()
            case _:
                node = data.draw(st.integers(0, len(nodes)))
                cancelled.add(node)
                session.cancel([node])
    ends, expected = ends_of(events), whole(nodes)
    assert set(ends) == {node.id for node in nodes}
    for id, end in ends.items():
        if isinstance(end, Failed) and end.code == "cancelled":
            origin = ends[end.origin]
            assert isinstance(origin, Failed)
            assert (origin.code, origin.origin) == ("cancelled", end.origin)
        elif isinstance(end, Failed):
            first = expected[id]
            assert isinstance(first, Failed)
            assert end.code == first.code
        else:
            assert end == expected[id]
