"""What a program is told of the tokens and seconds that its nodes cost."""

from __future__ import annotations

from dataclasses import astuple, fields

from plait import NodeUsage
from plait.interpreter.outcome import usage_of
from plait.interpreter.result import _sum
from plait.runtime.sequence import Usage

ENGINE = Usage(1, 2, 3, 4, 0.5, 0.25, 0.125, 6, 5)


def test_a_node_shows_all_that_the_engine_counted() -> None:
    shown = usage_of(ENGINE)
    for field in fields(ENGINE):
        assert getattr(shown, field.name) == getattr(ENGINE, field.name)


def test_a_run_sums_every_number_of_its_nodes() -> None:
    node = NodeUsage(*range(1, len(fields(NodeUsage)) + 1))
    assert astuple(_sum([node, node])) == tuple(2 * number for number in astuple(node))
