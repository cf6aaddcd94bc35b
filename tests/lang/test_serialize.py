"""Graphs as JSON: the round trip, and what is refused with its place."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.lang.api import gen
from plait.lang.checked_ops import METHODS
from plait.lang.constraint import FORMATS, ORDERS
from plait.lang.errors import GraphError
from plait.lang.graph import Break, Fork, Graph, Node, Where
from plait.lang.graph_schema import graph_schema
from plait.lang.ops import (
    ROLES,
    Constraint,
    Gen,
    GrammarText,
    Input,
    JsonSchema,
    Op,
    RoleBegin,
    RoleEnd,
    Sampling,
    Select,
    Source,
    Text,
    Value,
)
from plait.lang.program import Program
from plait.lang.serialize import dumps, loads, nodes_from_data, nodes_to_data
from plait.lang.show import to_dot, to_mermaid, to_text
from plait.lang.state import State

names = st.none() | st.text(min_size=1, max_size=5)
choices = st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=3, unique=True)
wheres = st.none() | st.builds(Where, st.text(max_size=9), st.integers(1, 999))


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


samplings = st.builds(
    Sampling,
    max_tokens=maybe(st.integers(5, 9)),
    min_tokens=maybe(st.integers(0, 5)),
    stop=maybe(choices.map(tuple) | st.just(())),
    temperature=maybe(st.floats(0, 9)),
    top_k=maybe(st.integers(-1, 9)),
    top_p=maybe(st.floats(0.1, 1)),
    min_p=maybe(st.floats(0, 1)),
    ignore_eos=maybe(st.booleans()),
)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "graph.schema.json"
SCHEMA = jsonschema.Draft202012Validator(json.loads(PAGE.read_text()))

schemas = st.builds(
    JsonSchema,
    st.sampled_from(['{"type":"object"}', "true", '{"enum":["é",1,null]}']),
    st.booleans(),
    st.integers(0, 3),
    st.sampled_from(ORDERS),
)
constraints = st.one_of(
    st.builds(Constraint, regex=st.text(max_size=5)),
    st.builds(Constraint, choices=choices.map(tuple)),
    st.builds(Constraint, schema=schemas),
    st.builds(Constraint, grammar=st.builds(GrammarText, st.sampled_from(FORMATS), st.text())),
)
gens = st.builds(Gen, names, samplings, seed=maybe(st.integers(0, 2**63 - 1)))
plain_ops: st.SearchStrategy[Op] = st.one_of(
    st.builds(Text, st.text()),
    st.just(Input("q")),
    gens,
    st.builds(Gen, names, constraint=constraints),
    st.builds(Select, names, choices.map(tuple), st.sampled_from(METHODS)),
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Random trees, with values of earlier gens, and turns opened and closed along chains."""
    nodes: list[Node] = []
    turns: dict[int | None, Any] = {None: None}
    for i in range(draw(st.integers(0, 12))):
        prev = draw(st.sampled_from([None, *range(i)]))
        sources = [n.id for n in nodes if isinstance(n.op, Gen | Select)]
        turn = turns[prev]
        kind = draw(st.sampled_from(["plain", "turn", *(["value"] if sources else [])]))
        op: Op = draw(plain_ops)
        if kind == "value":
            op = Value(Source(draw(st.sampled_from(sources))))
        elif kind == "turn":
            op = RoleEnd(turn) if turn else RoleBegin(draw(st.sampled_from(ROLES)))
            turn = op.role if isinstance(op, RoleBegin) else None
        turns[i] = turn
        reads = (op.source.node,) if isinstance(op, Value) else ()
        branch = draw(st.sampled_from(["", "0.1", "0.1/0.0"]))
        nodes.append(Node(i, op, prev, reads, branch, draw(wheres)))
    breaks = draw(st.lists(st.builds(Break, wheres, st.text(), st.text()), max_size=2))
    forks = (Fork("0", draw(st.integers(2, 5))), Fork("0.1/0", draw(st.integers(1, 3))))
    name, is_complete = draw(st.text()), draw(st.booleans())
    return Graph(name, tuple(nodes), tuple(breaks), is_complete, ("q",), forks)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(graphs())
def test_a_graph_survives_the_round_trip(graph: Graph) -> None:
    text = dumps(graph)
    again = loads(text)
    assert again == graph
    assert repr(again.nodes) == repr(graph.nodes)  # 0 and 0.0 are equal, and not the same
    assert repr(again) == repr(graph)
    assert again.digest() == graph.digest()
    assert nodes_from_data(json.loads(json.dumps(nodes_to_data(graph.nodes)))) == graph.nodes


@settings(max_examples=60, deadline=None, derandomize=True)
@given(graphs())
def test_a_graph_matches_the_published_schema(graph: Graph) -> None:
    SCHEMA.validate(json.loads(dumps(graph)))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(graphs())
def test_every_graph_can_be_shown(graph: Graph) -> None:
    lines = to_text(graph).split("\n")
    assert len(lines) == 1 + len(graph.nodes) + len(graph.breaks) + (not graph.is_complete)
    assert to_mermaid(graph).count("\n") >= len(graph.nodes)
    assert to_dot(graph).endswith("}")


def test_what_is_at_its_default_is_left_out() -> None:
    graph = Graph("p", (Node(0, Text("a"), None), Node(1, Gen("x", Sampling(top_k=0)), 0)))
    assert json.loads(dumps(graph)) == {
        "plait_graph": 5,
        "program": "p",
        "nodes": [
            {"id": 0, "op": {"kind": "text", "text": "a"}, "prev": None},
            {"id": 1, "op": {"kind": "gen", "name": "x", "sampling": {"top_k": 0}}, "prev": 0},
        ],
    }


GOOD = {"plait_graph": 5, "program": "p", "nodes": []}


def node(op: object, **rest: object) -> dict[str, object]:
    return {"id": 0, "op": op, "prev": None, **rest}


TEXT = {"kind": "text", "text": "a"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"plait_graph": NaN}', "NaN is not JSON"),
        ("[]", '"plait_graph" is missing'),
        ('{"program": "p"}', '"plait_graph" is missing'),
        ('{"plait_graph": 1}', "version 1, and this plait reads version 5"),
        ('{"plait_graph": 6}', "version 6, and this plait reads version 5"),
        ('{"plait_graph": true}', "version True"),
        ('{"plait_graph": 5}', "graph: missing field program, nodes"),
    ],
)
def test_what_is_not_a_graph_is_refused(text: str, fault: str) -> None:
    with pytest.raises(GraphError, match=fault):
        loads(text)


@pytest.mark.parametrize(
    ("nodes", "fault"),
    [
        ({}, "graph.nodes: expected a list"),
        ([3], r"graph.nodes\[0\]: expected an object, found 3"),
        ([node(TEXT, colour="red")], r"graph.nodes\[0\]: unknown field colour; known: id, op"),
        ([node({"kind": "dance"})], r"graph.nodes\[0\].op.kind: expected one of text, value"),
        ([node({"kind": "text"})], r"graph.nodes\[0\].op: missing field text"),
        ([node({"kind": "text", "text": 3})], r"op.text: expected of type str, found 3"),
        ([node({"kind": "text", "text": "\ud800"})], "lone surrogate"),
        ([node({"kind": "role_begin", "role": "cook"})], "op.role: expected one of system"),
        ([node({"kind": "gen", "sampling": {"top_p": 0}})], "node 0: top_p=0.0"),
        ([node({"kind": "gen", "sampling": {"max_tokens": True}})], "max_tokens: expected"),
        ([node({"kind": "gen", "sampling": {"top_p": 10**400}})], "top_p: the number is past"),
        (
            [node({"kind": "gen", "constraint": {}})],
            "op.constraint: a constraint is one",
        ),
        (
            [node({"kind": "gen", "constraint": {"regex": "a", "choices": ["b"]}})],
            "a constraint is one of",
        ),
        ([node({"kind": "select", "name": None, "choices": []})], "node 0: choices=()"),
        ([node(TEXT, prev=0)], "prev is 0; an edge points to an earlier node"),
        ([node(TEXT, id=1)], "its id is 1, its place 0"),
        ([node({"kind": "value", "source": {"node": 0}}, reads=[0])], "reads is 0"),
        ([node({"kind": "role_end", "role": "user"})], "ends where no turn is open"),
        ([node({"kind": "input", "name": "q"})], 'the input "q" is not one'),
        ([node(TEXT, branch="0.0")], 'the branch "0.0" has no fork "0" among the graph\'s forks'),
        ([node(TEXT, branch="zero")], 'the branch "zero" is not of the form "0.2"'),
    ],
)
def test_a_damaged_node_is_refused_with_its_place(nodes: object, fault: str) -> None:
    with pytest.raises(GraphError, match=fault):
        loads(json.dumps({**GOOD, "nodes": nodes}))


@pytest.mark.parametrize(
    "nodes",
    [
        {},
        [3],
        [node(TEXT, colour="red")],
        [node({"kind": "dance"})],
        [node({"kind": "text"})],
        [node({"kind": "text", "text": 3})],
        [node({"kind": "role_begin", "role": "cook"})],
        [node({"kind": "gen", "sampling": {"max_tokens": "4"}})],
    ],
)
def test_what_has_another_form_breaks_the_schema_as_well(nodes: object) -> None:
    damaged: list[Any] = [{**GOOD, "nodes": nodes}, {**GOOD, "plait_graph": 1}]
    assert SCHEMA.is_valid(json.loads(json.dumps(GOOD)))
    assert not any(SCHEMA.is_valid(each) for each in damaged)


def test_the_published_schema_is_that_of_the_declared_fields() -> None:
    message = "write it anew: plait graph --schema > docs/graph.schema.json"
    assert json.loads(PAGE.read_text()) == graph_schema(), message
    jsonschema.Draft202012Validator.check_schema(graph_schema())


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({}, "nodes: expected a list"),
        ([node(TEXT, id=3, prev=3)], r"nodes\[0\]: an edge of node 3 points to \[3\]"),
        ([node(TEXT, id=3), node(TEXT, id=2)], r"nodes\[1\].id: 2 after 3; ids grow"),
        ([node(TEXT, id=3, reads=[1])], r"reads \[1\]"),
        ([node({"kind": "gen", "seed": -1})], r"nodes\[0\].op: seed=-1"),
        ([node(TEXT, branch="00.1")], r"nodes\[0\].branch: '00.1'; its form is"),
    ],
)
def test_a_damaged_segment_is_refused_with_its_place(data: object, fault: str) -> None:
    with pytest.raises(GraphError, match=fault):
        nodes_from_data(data)


def test_a_segment_may_continue_an_earlier_one() -> None:
    (first,) = nodes_from_data([node(TEXT, id=7, prev=3)])
    assert first == Node(7, Text("a"), 3)


def test_a_long_chain_is_recorded_written_and_shown_without_recursion(
    start: Callable[..., tuple[State, Any]],
) -> None:
    def body(s: State) -> None:
        for i in range(3000):
            s += f"text {i} " + gen(f"v{i}", max_tokens=4)

    began = time.perf_counter()
    graph = Program(body).trace()
    assert loads(dumps(graph)) == graph
    assert to_text(graph).count("\n") == to_mermaid(graph).count("-->") + 1 == 6000
    assert len(graph.prefix_tree()) == 6000
    state, _ = start(lambda prompt: "")
    body(state)
    assert len(state._tape.nodes) == 6000
    assert time.perf_counter() - began < 4.0  # 0.3 s where nothing else runs
