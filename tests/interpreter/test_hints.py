"""What a wrong call is told: what happened, and what to pass instead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from plait import InvalidArgument, State, function, gen, run_graph
from plait.lang.graph import Graph
from plait.lang.serialize import dumps


@function
def ask(s: State, question: str) -> None:
    s += question + gen("a")


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (ask, r"run_graph\(Function\): pass a graph, such as ask.trace\(\) or result.graph"),
        (dumps(ask.trace()), r"run_graph\(str\): pass a graph, such as f.trace\(\) or"),
        (None, r"run_graph\(NoneType\): pass a graph"),
    ],
)
def test_what_is_not_a_graph_is_refused_with_where_one_comes_from(given: Any, fault: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"test_hints.py:\d+: {fault}"):
        run_graph(given)


def test_missing_inputs_name_the_argument_that_takes_them() -> None:
    with pytest.raises(InvalidArgument, match=r'pass inputs=\{"question": \.\.\.\}'):
        run_graph(ask.trace())
    with pytest.raises(InvalidArgument, match="unknown q; it takes none: leave `inputs` out"):
        run_graph(ask.trace(question="Why?"), inputs={"q": "Why?"})
    with pytest.raises(InvalidArgument, match=r"inputs='Why\?': pass a dict of the values by"):
        run_graph(ask.trace(), inputs="Why?")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="has a lone surrogate at position 0"):
        run_graph(ask.trace(), inputs={"question": "\ud800"})


def test_a_graph_that_breaks_a_rule_is_refused_by_it() -> None:
    graph = ask.trace(question="Why?")
    with pytest.raises(InvalidArgument, match=r"the graph of g breaks a rule: .*ids count up"):
        run_graph(Graph("g", graph.nodes[1:]))


@pytest.mark.parametrize(
    "call",
    [
        lambda **options: ask.run("Why?", **options),
        lambda **options: asyncio.run(ask.arun("Why?", **options)),
        lambda **options: ask.stream("Why?", **options),
        lambda **options: ask.astream("Why?", **options),
        lambda **options: ask.run_batch([("Why?",)], **options),
        lambda **options: asyncio.run(ask.arun_batch([("Why?",)], **options)),
        lambda **options: ask.options(**options),
        lambda **options: run_graph(ask.trace(question="Why?"), **options),
    ],
)
def test_an_unknown_option_is_told_the_options_and_a_near_one(call: Callable[..., object]) -> None:
    with pytest.raises(InvalidArgument, match=r"unknown") as caught:
        call(temprature=0)
    assert "the options are backend, seed, " in str(caught.value)
    assert "(did you mean temperature?)" in str(caught.value)


def test_a_mistyped_argument_is_told_the_near_one() -> None:
    with pytest.raises(InvalidArgument, match=r"unknown: qestion, .*did you mean question\?"):
        ask.run(qestion="Why?")
