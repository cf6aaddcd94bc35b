"""Passes: what a rewritten graph gives is what its program gives."""

from __future__ import annotations

import string
import zlib
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import Graph, InvalidArgument, Result, State, function, gen, run_graph, scripted
from plait.interpreter.backends.scripted import ScriptedBackend
from plait.interpreter.seeds import place_seed, row_seed
from plait.lang.check import check
from plait.lang.graph import Node
from plait.lang.ops import Gen, Score, Text
from plait.lang.passes import bind_inputs, drop_dead, hoist_prefix, merge_texts

from .random_programs import Step, program_of, programs

MANY = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def talk(text: str) -> dict[str, float]:
    """Say something else for each seed, and after each other text."""
    first = zlib.crc32(text.encode())
    letters = {string.ascii_lowercase[(first >> shift) % 26] for shift in (0, 5, 10, 15)}
    return dict.fromkeys(letters, 1 / len(letters))


@pytest.fixture(scope="module")
def backend() -> Iterator[ScriptedBackend]:
    opened = scripted(talk)
    assert isinstance(opened, ScriptedBackend)
    yield opened
    opened.close()


def seed_of_batch(seed: int) -> Callable[[int, str, int], int]:
    return lambda row, branch, number: place_seed(row_seed(seed, row), branch, number)


def shown(result: Result) -> dict[str, object]:
    values = {name: result[name] for name in result.variables}
    return {"text": result.text(), "messages": result.messages(), "values": values}


def written(result: Result) -> list[tuple[str, str | None, object]]:
    return [(each.branch, each.variable, each.value) for each in result.outputs()]


@MANY
@given(programs, st.integers(0, 3))
def test_merged_texts_change_nothing(
    backend: ScriptedBackend, steps: Sequence[Step], seed: int
) -> None:
    program = program_of(steps)
    graph = merge_texts(program.trace())
    assert check(graph) == []
    run, whole = (
        program.run(backend=backend, seed=seed),
        run_graph(graph, backend=backend, seed=seed),
    )
    assert shown(whole) == shown(run)
    assert written(whole) == written(run)
    assert merge_texts(graph) == graph


@MANY
@given(programs, st.integers(0, 3))
def test_dead_nodes_change_no_text_and_no_variable(
    backend: ScriptedBackend, steps: Sequence[Step], seed: int
) -> None:
    program = program_of(steps)
    graph = drop_dead(program.trace())
    assert check(graph) == []
    run, whole = (
        program.run(backend=backend, seed=seed),
        run_graph(graph, backend=backend, seed=seed),
    )
    assert shown(whole) == shown(run)
    assert set(written(whole)) <= set(written(run))
    assert drop_dead(graph) == graph


@MANY
@given(st.lists(programs, min_size=1, max_size=3), st.text("go x", max_size=3), st.integers(0, 3))
def test_a_hoisted_batch_gives_what_its_rows_give(
    backend: ScriptedBackend, rows: list[Sequence[Step]], start: str, seed: int
) -> None:
    graphs = [_with_start(program_of(steps).trace(), start) for steps in rows]
    batch = hoist_prefix(graphs, seed_of_batch(seed))
    assert check(batch) == []
    together = written(run_graph(batch, backend=backend, seed=99))
    for row, graph in enumerate(graphs):
        alone = written(run_graph(graph, backend=backend, seed=row_seed(seed, row)))
        own = [
            (branch.removeprefix(f"0.{row}").removeprefix("/"), name, value)
            for branch, name, value in together
            if (branch + "/").startswith(f"0.{row}/")
        ]
        assert own == alone
    prefix = [node for node in batch.nodes if node.branch == ""]
    assert prefix or not start


def _with_start(graph: Graph, start: str) -> Graph:
    """Put a text at the front, in one node with the program's own first text or not."""
    first = graph.nodes[0]
    assert isinstance(first.op, Text)
    nodes = (Node(0, Text(start + first.op.text), None), *graph.nodes[1:])
    return Graph(graph.program, nodes, forks=graph.forks)


@function
def ask(s: State, question: str) -> None:
    s += "Answer in a word.\n"
    s += question
    s += "\n" + gen("answer", max_tokens=3)
    s.fork(2)
    draft = s.copy()
    draft += "unread " + gen(max_tokens=3) + " end"


def test_texts_of_a_branch_become_one_node() -> None:
    graph = ask.trace(question="Why?")
    assert [type(node.op) for node in graph.nodes] == [Text, Text, Text, Gen, Text, Gen, Text]
    merged = merge_texts(graph)
    assert merged.nodes[0].op == Text("Answer in a word.\nWhy?\n")
    assert [type(node.op) for node in merged.nodes] == [Text, Gen, Text, Gen, Text]
    assert merged.nodes[0].where == graph.nodes[0].where
    assert [node.prev for node in merged.nodes] == [None, 0, 1, 2, 3]


def test_a_text_that_another_branch_goes_on_from_stays_apart() -> None:
    @function
    def forked(s: State) -> None:
        s += "a"
        branch = s.copy()
        branch += "b"
        s += "c"

    assert merge_texts(forked.trace()).nodes == forked.trace().nodes


def test_what_nothing_reads_is_dropped() -> None:
    kept = drop_dead(ask.trace(question="Why?"))
    assert [node.branch for node in kept.nodes] == ["", "", "", ""]


def test_a_gen_that_another_one_counts_from_is_kept() -> None:
    nodes = (
        Node(0, Text("a"), None),
        Node(1, Gen(), 0, branch="0.0/0.0"),  # not on the way to the next one, but before it
        Node(2, Gen("x"), 0, branch="0.0/0.0"),
        Node(3, Text("b"), 0),
    )
    graph = Graph("g", nodes)
    assert drop_dead(graph).nodes == (nodes[0], Node(1, Text("b"), 0))
    read = Graph("g", (*nodes, Node(4, Gen("x"), 2)))
    assert len(drop_dead(read).nodes) == 5


def test_a_batch_has_its_common_text_once() -> None:
    graphs = [ask.trace(question=question) for question in ("Why so?", "Why not?", "When?")]
    batch = hoist_prefix(graphs, seed_of_batch(1))
    shared = [node.op for node in batch.nodes if node.branch == ""]
    assert shared == [Text("Answer in a word.\n"), Text("Wh")]
    assert batch.forks[0].width == 3
    assert {node.branch for node in batch.nodes} == {
        *("", "0.0", "0.1", "0.2", "0.0/1.0", "0.1/1.0", "0.2/1.0")
    }


def test_a_batch_reads_its_variables_by_row(backend: ScriptedBackend) -> None:
    rows = [{"question": "Why so?"}, {"question": "When?"}]
    batch = hoist_prefix([ask.trace(**row) for row in rows], seed_of_batch(7))
    apart = ask.run_batch(rows, backend=backend, seed=7)
    together = run_graph(batch, backend=backend)
    assert together["answer"] == [result["answer"] for result in apart]


def test_a_score_names_its_gen_where_it_is_now() -> None:
    nodes = (
        Node(0, Text("a"), None),
        Node(1, Text("b"), 0),
        Node(2, Gen("x"), 1),
        Node(3, Score(source=2), 1, (2,)),
    )
    graph = Graph("g", nodes)
    merged = merge_texts(graph)
    assert merged.nodes[2] == Node(2, Score(source=1), 0, (1,))
    batch = hoist_prefix([graph, merged], seed_of_batch(1))
    assert check(batch) == []
    scores = [node for node in batch.nodes if isinstance(node.op, Score)]
    assert [batch.nodes[read].branch for node in scores for read in node.reads] == ["0.0", "0.1"]


def test_inputs_are_bound_before_a_batch() -> None:
    open_one = ask.trace()
    bound = bind_inputs(open_one, {"question": "Why?"})
    assert bound == ask.trace(question="Why?")
    assert bind_inputs(open_one, {}) == open_one
    with pytest.raises(InvalidArgument, match="row 0 has open inputs: bind_inputs"):
        hoist_prefix([open_one], seed_of_batch(1))
    with pytest.raises(InvalidArgument, match="at least one graph"):
        hoist_prefix([], seed_of_batch(1))
