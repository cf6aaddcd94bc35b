"""Count what a program would cost, before anything is spent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...lang.graph import Break, Graph, Node
from ...lang.ops import Gen, Score, Select, Source, Value
from ...lang.program import Program
from ...lang.words import spell
from ..backend import Done, Failed, NodeEvent, SessionConfig
from ..branch import TextCodec
from ..calls import Calls
from ..executor import chat_of
from ..model_text import ModelText
from ..session import ExecutorSession
from .engine import Counted, CountingEngine
from .report import CallKind, Plan, PlannedCall, PlannedFailure

MAX_IN_FLIGHT = 256  # rows, as in a batch
_KINDS: dict[type, CallKind] = {Gen: "gen", Select: "select", Score: "score"}


@dataclass(slots=True)
class _Row:
    """One row's graph on its way through the counting engine."""

    number: int
    graph: Graph
    num_left: int
    failures: list[Failed]

    def listen(self, events: Sequence[NodeEvent]) -> None:
        """Count the ends of nodes."""
        for event in events:
            self.num_left -= isinstance(event, Done | Failed)
            if isinstance(event, Failed) and event.origin == event.node:
                self.failures.append(event)


def plan_graphs(
    program: str,
    graphs: Iterable[Graph],
    text: ModelText,
    config: SessionConfig,
    output_tokens: int | None = None,
) -> Plan:
    """Run graphs on an engine that counts, a window of them at a time."""
    posted: deque[Callable[[], None]] = deque()
    engine = CountingEngine(text, output_tokens)
    calls = Calls(engine, posted.append)
    codec, chat = TextCodec(text.tokenizer), chat_of(text.tokenizer)
    waiting, done = enumerate(graphs), list[_Row]()
    rows: list[_Row] = []

    def take() -> Iterator[_Row]:
        for number, graph in waiting:
            row = _Row(number, graph, len(graph.nodes), [])
            own = replace(config, id=str(number))
            ExecutorSession(own, row.listen, calls, codec, chat).submit(_plain(graph.nodes))
            yield row

    fresh = take()
    while True:
        while len(rows) < MAX_IN_FLIGHT and (row := next(fresh, None)) is not None:
            rows.append(row)
        has_run = engine.run_round()
        while posted:
            posted.popleft()()
        done += [row for row in rows if row.num_left == 0]
        rows = [row for row in rows if row.num_left > 0]
        if not has_run and not rows:
            return _report(program, sorted(done, key=lambda row: row.number), engine)


def _plain(nodes: Iterable[Node]) -> list[Node]:
    """Take a whole output where a run would take what was captured of it."""
    return [
        replace(node, op=Value(Source(node.op.source.node))) if isinstance(node.op, Value) else node
        for node in nodes
    ]


def _report(program: str, rows: Sequence[_Row], engine: CountingEngine) -> Plan:
    calls = [
        _call(row.number, node, engine.counts[f"{row.number}:{node.id}"])
        for row in rows
        for node in row.graph.nodes
        if f"{row.number}:{node.id}" in engine.counts
    ]
    failures = [
        PlannedFailure(row.number, row.graph.nodes[failed.node].where, failed.message)
        for row in rows
        for failed in row.failures
    ]
    breaks: dict[Break, None] = dict.fromkeys(b for row in rows for b in row.graph.breaks)
    return Plan(
        program=program,
        num_rows=len(rows),
        calls=tuple(calls),
        failures=tuple(failures),
        breaks=tuple(breaks),
        is_complete=all(row.graph.is_complete for row in rows),
        peak_kv_tokens=engine.peak_tokens,
        all_kv_tokens=len(engine.tree),
    )


def _call(row: int, node: Node, counted: Counted) -> PlannedCall:
    return PlannedCall(
        row,
        node.id,
        node.where,
        _KINDS[type(node.op)],
        spell(node.op),
        counted.prompt_tokens,
        counted.cached_tokens,
        counted.output_tokens,
        counted.is_bounded,
    )


def graphs_of(program: Program, rows: Iterable[Mapping[str, object]]) -> Iterator[Graph]:
    """Trace a program once a row."""
    for row in rows:
        yield program.trace(**program.arguments((), row))
