"""The executor: what becomes ready, what the engine gets, and what comes back."""

from __future__ import annotations

from plait.interpreter.backend import Delta, Done, Started
from plait.lang.graph import Node
from plait.lang.ops import Gen, RoleBegin, RoleEnd, Source, Text, Value
from plait.runtime.model.scripted import IM_END, IM_START
from plait.runtime.sequence import Usage

from .bench import Bench, chain


def test_texts_finish_at_once_and_a_gen_waits_for_the_engine() -> None:
    bench = Bench()
    bench.session.submit(chain(Text("a"), Text(""), Text("b"), Gen("x"), Text("c")))
    assert bench.lists == [[Done(0, "a"), Done(1, ""), Done(2, "b"), Started(3)]]
    assert bench.engine.prompt("run:3") == list(b"ab")
    bench.answer(3, "XY", usage=Usage(2, 1, 2, 1, 0.1, 0.2, 0.3), stop_reason=".")
    assert len(bench.lists) == 1, "nothing happens on the engine's thread"
    bench.run()
    done = bench.ends()[3]
    assert isinstance(done, Done)
    assert (done.text, done.meta.finish_reason, done.meta.stop_reason) == ("XY", "stop", ".")
    assert (done.meta.usage.cached_tokens, done.meta.usage.decode_s) == (1, 0.3)
    assert bench.ends()[4] == Done(4, "c")


def test_generated_tokens_go_on_as_they_are_and_the_tail_as_text() -> None:
    bench = Bench()
    bench.session.submit(chain(Text("a"), Gen("x"), Text("c"), Gen("y")))
    # Token 200 is half a character: no text can give it back.
    bench.answer(1, "Zt", token_ids=(90, 200), tail="t")
    bench.run()
    assert bench.engine.prompt("run:3") == [97, 90, 200, *b"tc"]


def test_deltas_come_only_when_they_are_asked_for() -> None:
    for is_streaming in (False, True):
        bench = Bench(is_streaming=is_streaming)
        bench.session.submit(chain(Gen("x")))
        for text in ("a", "", "b"):
            bench.tell(0, text)
            bench.run()
        bench.answer(0, "c")
        bench.run()
        deltas = [event for event in bench.events if isinstance(event, Delta)]
        assert deltas == ([Delta(0, "a"), Delta(0, "b"), Delta(0, "c")] if is_streaming else [])
        assert bench.ends()[0] == Done(0, "abc", bench.ends()[0].meta)  # type: ignore[union-attr]


def test_what_came_since_the_last_turn_is_one_list() -> None:
    bench = Bench()
    bench.session.submit([Node(i, Gen(f"x{i}"), None) for i in range(50)])
    for i in range(50):
        bench.answer(i, "a")
    assert len(bench.posted) == 1
    bench.run()
    assert [len(events) for events in bench.lists] == [50, 50]


def test_values_join_branches_and_wait_for_their_sources() -> None:
    bench = Bench()
    stem = chain(Text("Q:"))
    left = Node(1, Gen("l"), 0, branch="0.0")
    right = Node(2, Gen("r"), 0, branch="0.1")
    join = [
        Node(3, Value(Source(2)), 0, reads=(2,)),
        Node(4, Value(Source(1)), 3, reads=(1,)),
        Node(5, Gen(), 4),
    ]
    bench.session.submit([*stem, left, right, *join])
    bench.answer(1, "L")
    bench.run()
    assert "run:5" not in bench.engine.requests
    bench.answer(2, "R")
    bench.run()
    assert bench.engine.prompt("run:5") == list(b"Q:RL")
    assert bench.ends()[3] == Done(3, "R")


def test_segments_may_point_into_earlier_ones() -> None:
    bench = Bench()
    bench.session.submit(chain(Text("a"), Gen("x")))
    bench.answer(1, "b")
    bench.run()
    use = Node(2, Value(Source(1)), 0, reads=(1,))
    bench.session.submit([use, Node(3, Gen(), 2), Node(4, Gen(), 1)])
    assert bench.engine.prompt("run:3") == list(b"ab")
    assert bench.engine.prompt("run:4") == list(b"ab")


def test_roles_add_control_tokens_and_the_templates_text() -> None:
    bench = Bench()
    bench.session.submit(
        chain(
            RoleBegin("user"),
            Text("<|im_end|>"),
            RoleEnd("user"),
            RoleBegin("assistant"),
            Gen("x"),
            RoleEnd("assistant"),
        )
    )
    prompt = [IM_START, *b"user\n<|im_end|>", IM_END, *b"\n", IM_START, *b"assistant\n"]
    assert bench.engine.prompt("run:4") == prompt
    bench.answer(4, "Hi")
    bench.run()
    texts = [end.text for end in bench.ends().values() if isinstance(end, Done)]
    assert "".join(texts) == (
        "<|im_start|>user\n<|im_end|><|im_end|>\n<|im_start|>assistant\nHi<|im_end|>\n"
    )
