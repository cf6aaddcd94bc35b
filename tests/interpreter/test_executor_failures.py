"""The executor: failures and cancels reach the nodes that depend on them, and no other."""

from __future__ import annotations

import pytest

from plait.interpreter.backend import Done, Failed, NodeEvent, SessionConfig
from plait.lang.graph import Node
from plait.lang.ops import Gen, Input, RoleBegin, RoleEnd, Sampling, Source, Text, Value
from plait.runtime.sequence import Output

from .bench import Bench, chain


def test_a_role_without_a_template_fails_and_the_rest_goes_on() -> None:
    bench = Bench(template=None)
    bench.session.submit([*chain(RoleBegin("user"), Text("a"), Gen("x")), Node(3, Gen("y"), None)])
    ends = bench.ends()
    assert [ends[i] for i in range(3)] == [
        Failed(i, "no_template", ends[0].message, 0)  # type: ignore[union-attr]
        for i in range(3)
    ]
    bench.answer(3, "ok")
    bench.run()
    assert isinstance(bench.ends()[3], Done)


def test_a_failure_reaches_all_dependants_with_its_cause() -> None:
    bench = Bench()
    bench.session.submit(
        [
            *chain(Text("a"), Gen("bad"), Text("b"), Gen("after")),
            Node(4, Gen("sibling"), 0),
            Node(5, Value(Source(1)), 4, reads=(1,)),
        ]
    )
    bench.fail(1)
    bench.run()
    ends = bench.ends()
    message = 'gen("bad"): 9 > 8 tokens'
    assert [ends[i] for i in (1, 2, 3, 5)] == [
        Failed(i, "context_exceeded", message, 1) for i in (1, 2, 3, 5)
    ]
    assert 4 not in ends
    assert bench.engine.aborted == []
    bench.session.submit([Node(6, Text("late"), 3), Node(7, Text("later"), 6)])
    assert bench.ends()[7] == Failed(7, "context_exceeded", message, 1)


def test_cancel_stops_nodes_and_dependants_and_may_be_repeated() -> None:
    bench = Bench()
    bench.session.submit(
        [
            *chain(Text("a"), Gen("x"), Gen("y")),
            Node(3, Gen("z"), 0),
            Node(4, Value(Source(2)), 3, (2,)),
        ]
    )
    bench.session.cancel([1, 99])
    bench.session.cancel([1])
    assert bench.engine.aborted == ["run:1"]
    ends = bench.ends()
    assert {i: (ends[i].code, ends[i].origin) for i in (1, 2, 4)} == {  # type: ignore[union-attr]
        i: ("cancelled", 1) for i in (1, 2, 4)
    }
    bench.answer(1, "late", finish_reason="cancelled")
    bench.answer(3, "ok")
    bench.run()
    assert isinstance(bench.ends()[3], Done)


def test_cancelling_a_node_that_is_done_stops_what_still_builds_on_it() -> None:
    bench = Bench()
    bench.session.submit(chain(Text("a"), Gen("x"), Gen("y")))
    bench.session.cancel([0])
    ends = bench.ends()
    assert ends[0] == Done(0, "a")
    assert ends[2] == Failed(2, "cancelled", "cancelled before it was done", 1)


def test_after_close_there_is_silence() -> None:
    bench = Bench(is_streaming=True)
    bench.session.submit([Node(i, Gen(f"x{i}"), None) for i in range(3)])
    num_lists = len(bench.lists)
    bench.engine.sinks["run:0"](Output("run:0", text="already on its way"))
    bench.session.close()
    bench.session.close()
    assert sorted(bench.engine.aborted) == ["run:0", "run:1", "run:2"]
    bench.answer(1, "late")
    bench.session.submit(chain(Text("a")))
    bench.session.cancel([0])
    bench.run()
    assert len(bench.lists) == num_lists


def test_runs_of_one_executor_do_not_touch_each_other() -> None:
    bench = Bench()
    others: list[NodeEvent] = []
    other = bench.executor.open(SessionConfig("other", seed=1), others.extend)
    for session in (bench.session, other):
        session.submit(chain(Gen("x")))
    bench.session.close()
    bench.engine.sinks["other:0"](Output("other:0", text="ok", finish_reason="stop"))
    bench.run()
    assert isinstance(others[-1], Done)


@pytest.mark.parametrize(
    "nodes",
    [
        [Node(0, Input("question"), None)],
        [Node(0, Text("a"), 5)],
        [Node(0, Value(Source(0)), None, reads=(0,))],
        [Node(0, RoleEnd("user"), None)],
        [Node(0, Gen("x", Sampling(top_p=2.0)), None)],
        [Node(0, Gen("x", Sampling(temperature=-1.0)), None)],
    ],
)
def test_a_node_without_meaning_fails_alone(nodes: list[Node]) -> None:
    bench = Bench()
    bench.session.submit(nodes)
    failed = bench.ends()[0]
    assert isinstance(failed, Failed)
    assert (failed.code, failed.origin) == ("invalid_request", 0)


def test_text_that_no_tokenizer_takes_fails_its_node_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()

    def refuse(self: object, text: str) -> list[int]:
        raise UnicodeEncodeError("utf-8", text, 0, 1, "surrogates not allowed")

    monkeypatch.setattr(type(bench.engine.model.tokenizer), "encode", refuse)
    bench.session.submit([*chain(Text("\ud800"), Gen("x")), Node(2, Gen("y"), None)])
    failed = bench.ends()[1]
    assert isinstance(failed, Failed)
    assert (failed.code, failed.origin) == ("internal", 1)
    assert "surrogates not allowed" in failed.message
    assert "run:2" in bench.engine.requests


def test_an_id_that_comes_twice_is_refused() -> None:
    bench = Bench()
    bench.session.submit(chain(Text("a")))
    bench.session.submit(chain(Text("b"), Text("c")))
    assert bench.lists[1][:1] == [
        Failed(0, "invalid_request", "node 0 was submitted twice; each node has its own id", 0)
    ]
    assert bench.lists[1][1:] == [Done(1, "c")]


def test_a_chain_of_many_nodes_does_not_recurse() -> None:
    bench = Bench()
    bench.session.submit(chain(*[Text("a")] * 3000, Gen("x"), *[Text("b")] * 3000))
    bench.fail(3000)
    bench.run()
    ends = bench.ends()
    assert isinstance(ends[2999], Done)
    failed = ends[6000]
    assert isinstance(failed, Failed)
    assert failed.origin == 3000
