"""Graphs: the tree of prefixes, the digest, the rules, the pictures."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.lang.api import assistant, gen, select, user
from plait.lang.check import check
from plait.lang.graph import Fork, Graph, Node, Prefix, Where
from plait.lang.ops import Gen, Op, RoleBegin, RoleEnd, Source, Text, Value
from plait.lang.program import Program
from plait.lang.show import to_dot, to_mermaid, to_text
from plait.lang.state import State


def body(s: State, topic: str) -> None:
    s += user("About " + topic)
    forks = s.fork(2)
    forks += "same"
    forks += lambda i: f" own {i}"
    forks += gen("o", max_tokens=4, stop="\n")
    s += forks[1].ref("o")
    with s.assistant():
        s += select("best", ["a", 'b"'], "token_length_normalized")
        if s["best"] == "a":
            s += "never"


GRAPH = Program(body).trace()


def chain(*ops: Op) -> Graph:
    nodes = (
        Node(i, op, i - 1 if i else None, (op.source.node,) if isinstance(op, Value) else ())
        for i, op in enumerate(ops)
    )
    return Graph("g", tuple(nodes))


def test_equal_prefixes_are_one_step_of_the_tree() -> None:
    tree = GRAPH.prefix_tree()
    assert tree[:4] == tuple(Prefix(i - 1 if i else None, (i,)) for i in range(4))
    assert tree[4] == Prefix(3, (4, 5))
    assert [step.nodes for step in tree[5:9]] == [(6,), (7,), (8,), (9,)]


def test_what_a_model_writes_is_never_shared() -> None:
    twice = Graph("g", (Node(0, Gen(), None), Node(1, Gen(), None)))
    assert twice.prefix_tree() == (Prefix(None, (0,)), Prefix(None, (1,)))
    texts = Graph("g", (Node(0, Text("a"), None), Node(1, Text("a"), None)))
    assert texts.prefix_tree() == (Prefix(None, (0, 1)),)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(-1, 8), st.sampled_from([Text("a"), Text("b"), Gen("x")]))))
def test_the_tree_has_one_step_for_each_distinct_prefix(shape: list[tuple[int, Op]]) -> None:
    nodes = [
        Node(i, op, min(prev, i - 1) if min(prev, i - 1) >= 0 else None)
        for i, (prev, op) in enumerate(shape)
    ]
    prefixes: list[tuple[object, ...]] = []  # of each node: what each node on the way adds
    for node in nodes:
        before = () if node.prev is None else prefixes[node.prev]
        prefixes.append((*before, node.id if isinstance(node.op, Gen) else node.op))
    tree = Graph("g", tuple(nodes)).prefix_tree()
    expected: dict[tuple[object, ...], list[int]] = {}
    for node, prefix in zip(nodes, prefixes, strict=True):
        expected.setdefault(prefix, []).append(node.id)
    assert [list(step.nodes) for step in tree] == list(expected.values())
    for step in tree:
        parent = () if step.parent is None else prefixes[tree[step.parent].nodes[0]]
        assert prefixes[step.nodes[0]][:-1] == parent


def test_a_graph_is_printed_in_one_line_with_its_size_and_digest() -> None:
    graph = chain(Text("a"), Gen("x"))
    assert str(graph) == f"<Graph of g: 2 nodes, 2 distinct prefixes, {graph.digest()[:12]}>"
    assert "13 nodes, 12 distinct prefixes, not complete" in repr(GRAPH)


def test_the_digest_is_what_the_graph_does() -> None:
    graph = chain(Text("a"), Gen("x"))
    elsewhere = Node(0, Text("a"), None, where=Where("b.py", 3))
    assert graph.digest() == Graph("other", (elsewhere, graph.nodes[1])).digest()
    assert graph.digest() != chain(Text("a"), Gen("y")).digest()
    assert graph.digest() != chain(Text("b"), Gen("x")).digest()
    assert graph.digest() != Graph("g", graph.nodes, forks=(Fork("0", 2),)).digest()


def test_traced_graphs_obey_the_rules() -> None:
    assert check(GRAPH) == []


def test_each_rule_names_what_breaks_it() -> None:
    read = Node(0, Text("a"), None, reads=(0,))
    faulty = [
        (chain(Text("a"), Value(Source(0))), "its source 0 is a Text, which has no value"),
        (chain(RoleBegin("user"), RoleBegin("user")), "a user turn begins inside a user turn"),
        (chain(RoleBegin("user"), RoleEnd("system")), "a system turn ends where user turn is open"),
        (Graph("g", (Node(0, Text("a"), 3),)), "prev is 3; an edge points to an earlier node"),
        (
            chain(Text("\ud800")),
            "text has a lone surrogate at position 0, which no encoding has; "
            "read the source with errors='replace'",
        ),
        (
            Graph("g", (read,)),
            "it reads [0]; its operation asks for None",
        ),
    ]
    for graph, message in faulty:
        assert message in [problem.message for problem in check(graph)]


@pytest.mark.parametrize(
    "branch", ["0", "0.", ".1", "0.1/", "/0.1", "00.1", "0.01", "0.1/2", "a.b", "-1.0", "0.\u0661"]
)
def test_a_branch_has_the_form_of_a_path(branch: str) -> None:
    graph = Graph("g", (Node(0, Text("a"), None, branch=branch),))
    (problem,) = check(graph)
    assert problem.message == f'the branch "{branch}" is not of the form "0.2" or "0.2/1.0"'


def test_a_branch_is_one_of_its_forks() -> None:
    nodes = (
        Node(0, Text("a"), None, branch="0.1"),
        Node(1, Text("b"), None, branch="0.1/0.0"),
    )
    assert check(Graph("g", nodes, forks=(Fork("0", 2), Fork("0.1/0", 1)))) == []
    faulty = [
        ((Fork("0", 2),), 'the branch "0.1/0.0" has no fork "0.1/0" among the graph\'s forks'),
        ((Fork("0", 1), Fork("0.1/0", 1)), 'the branch "0.1" is past the 1 branches of its fork'),
        ((Fork("0.1/0", 1), Fork("0", 2)), 'the branch "0.1" has no fork "0" among the'),
        ((Fork("0", 2), Fork("0.1/0", 1), Fork("0", 2)), 'the fork "0" is there twice'),
        ((Fork("0", 2), Fork("0.1/0", 1), Fork("1", 0)), 'the fork "1" has width 0; it is 1 or'),
        ((Fork("0", 2), Fork("0.1/0", 1), Fork("x", 1)), 'the fork "x" is not of the form "0"'),
    ]
    for forks, fault in faulty:
        assert fault in str(check(Graph("g", nodes, forks=forks))[0])


def test_a_problem_has_its_source_line() -> None:
    node = Node(0, RoleEnd("user"), None, where=Where("/home/me/essay.py", 12))
    (problem,) = check(Graph("g", (node,)))
    assert str(problem) == "essay.py:12, node 0: a user turn ends where no turn is open"


def test_the_text_has_one_node_a_line() -> None:
    line = body.__code__.co_firstlineno
    shown = to_text(GRAPH).splitlines()
    assert shown[0] == "body(topic)"
    assert shown[1].split() == ["0", "user", "begin", f"test_graph.py:{line + 1}"]
    assert [" ".join(row.split()[:-1]) for row in shown[2:14]] == [
        '1 text "About "',
        "2 input topic",
        "3 user end",
        '4 [0.0] text "same"',
        '5 [0.1] text "same" <- 3',
        '6 [0.0] text " own 0" <- 4',
        '7 [0.1] text " own 1" <- 5',
        '8 [0.0] gen o max_tokens=4 stop=["\\n"] <- 6',
        '9 [0.1] gen o max_tokens=4 stop=["\\n"] <- 7',
        "10 value of 9 <- 3",
        "11 assistant begin",
        '12 select best choices=["a", "b\\""] by token_length_normalized',
    ]
    assert f"break at test_graph.py:{line + 9}: best: == needs the value" in shown
    assert shown[-1].startswith("incomplete")


def test_pictures_have_every_node_and_edge_and_escape_the_texts() -> None:
    graph = Program(lambda s: s.user('<b>"#\n' + gen("x")) and None).trace()
    mermaid, dot = to_mermaid(graph), to_dot(graph)
    assert 'n1["text #34;#60;b#62;\\#34;#35;\\n#34;"]' in mermaid
    assert 'n2(["gen x"])' in mermaid
    assert "n1 --> n2" in mermaid
    assert 'n1 [label="text \\"<b>\\\\\\"#\\\\n\\""];' in dot
    assert "n1 -> n2;" in dot
    assert "n9 -.-> n10" in to_mermaid(GRAPH)
    assert "n9 -> n10 [style=dashed];" in to_dot(GRAPH)


def test_a_turn_expression_and_a_block_have_the_same_digest() -> None:
    def by_block(s: State) -> None:
        with s.assistant():
            s += "a"

    def by_expression(s: State) -> None:
        s += assistant("a")

    assert Program(by_block).trace().digest() == Program(by_expression).trace().digest()
