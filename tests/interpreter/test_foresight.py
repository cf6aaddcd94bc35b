"""Foresight: what the requests of a run are told of their future."""

from __future__ import annotations

from plait import State, function, gen, scripted, select
from plait.interpreter.foresight import GUESS, Foresight
from plait.lang.graph import Node
from plait.lang.ops import Gen, Sampling, Select
from plait.runtime.sequence import Hint


@function
def tree(s: State) -> None:
    s += "start " + gen("plan", max_tokens=10)
    forks = s.fork(2)
    forks[0] += "a" + gen("long", max_tokens=50) + select("grade", ["good", "bad"])
    forks[1] += "b" + gen("short", max_tokens=5)
    s += "so " + forks[1].ref("short") + gen("end", max_tokens=20)


@function
def deep(s: State, number: int) -> None:
    s += f"Question {number}, and a text of some length to go with it. " * 2
    for first in s.fork(3):
        first += "plan " + gen("plan", max_tokens=12)
        for second in first.fork(2):
            second += "work " + gen("work", max_tokens=12)
            last = second.copy()
            last += "end " + gen("end", max_tokens=4)


def hints(nodes: tuple[Node, ...], foresight: Foresight) -> dict[str | None, Hint]:
    asked = [node for node in nodes if isinstance(node.op, Gen | Select)]
    return {node.op.name: foresight.hint(node) for node in asked}  # type: ignore[union-attr]


def test_each_request_knows_its_source_its_consumers_and_the_way_to_the_end() -> None:
    nodes = tree.trace().nodes
    foresight = Foresight(Sampling(), str)
    foresight.add(nodes)
    ids = {node.op.name: str(node.id) for node in nodes if isinstance(node.op, Gen | Select)}
    assert hints(nodes, foresight) == {
        "plan": Hint(None, 3, 10 + 50 + 1),
        "long": Hint(ids["plan"], 1, 50 + 1),
        "grade": Hint(ids["long"], 0, 1),
        "short": Hint(ids["plan"], 0, 5 + 20),  # its value is read before the end
        "end": Hint(ids["plan"], 0, 20),
    }


def test_order_and_leases_change_no_output() -> None:
    letters = dict.fromkeys("abcdefghij", 0.1)
    rows = [{"number": i} for i in range(12)]

    def written(pool_tokens: int) -> list[object]:
        backend = scripted(lambda text: letters, max_context=512, kv_cache_tokens=pool_tokens)
        try:
            results = deep.run_batch(rows, backend=backend, seed=3)
            return [result.outputs() for result in results]
        finally:
            backend.close()

    assert written(1024) == written(64_000)


def test_a_later_segment_goes_on_from_an_earlier_one() -> None:
    nodes = tree.trace().nodes
    foresight = Foresight(Sampling(), str)
    foresight.add(nodes[:2])
    assert hints(nodes[:2], foresight)["plan"] == Hint(None, 0, 10)
    foresight.add(nodes[2:])
    assert hints(nodes, foresight)["long"].continues == "1"


def test_a_gen_without_a_limit_takes_the_runs_or_a_guess() -> None:
    nodes = (Node(0, Gen("x"), None),)
    for limit, expected in ((None, GUESS), (7, 7)):
        foresight = Foresight(Sampling(max_tokens=limit), str)
        foresight.add(nodes)
        assert foresight.hint(nodes[0]).remaining_tokens == expected
