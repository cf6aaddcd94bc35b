"""The executor against an engine that does what the test says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from plait.interpreter.backend import Delta, Done, Failed, NodeEvent, SessionConfig, Started
from plait.interpreter.executor import Executor
from plait.interpreter.lowering import sampling_params
from plait.interpreter.seeds import place_seed
from plait.lang.graph import Node
from plait.lang.ops import Gen, Input, Op, RoleBegin, RoleEnd, Sampling, Select, Text, Value
from plait.runtime.model.interface import Model
from plait.runtime.model.scripted import CHATML, IM_END, IM_START, scripted_model
from plait.runtime.sequence import Output, Request, SamplingParams, ScoreRequest, Usage


class ByHandEngine:
    """Keeps requests until the test answers them."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.requests: dict[str, Request | ScoreRequest] = {}
        self.sinks: dict[str, Callable[[Output], None]] = {}
        self.aborted: list[str] = []

    def submit(self, request: Request | ScoreRequest, sink: Callable[[Output], None]) -> None:
        assert request.id not in self.requests
        self.requests[request.id] = request
        self.sinks[request.id] = sink

    def abort(self, request_id: str) -> None:
        self.aborted.append(request_id)

    def prompt(self, request_id: str) -> list[int]:
        request = self.requests[request_id]
        assert isinstance(request, Request)
        prompt: list[int] = request.prompt.tolist()
        return prompt


class Bench:
    """An executor, its posted callbacks, and one open session."""

    def __init__(self, *, template: str | None = CHATML, is_streaming: bool = False) -> None:
        self.engine = ByHandEngine(scripted_model(lambda text: "", num_blocks=4, template=template))
        self.posted: list[Callable[[], None]] = []
        self.lists: list[list[NodeEvent]] = []
        self.executor = Executor(self.engine, self.posted.append)
        config = SessionConfig("run", seed=7, is_streaming=is_streaming)
        self.session = self.executor.open(config, self.listen)

    def listen(self, events: Sequence[NodeEvent]) -> None:
        self.lists.append(list(events))

    @property
    def events(self) -> list[NodeEvent]:
        return [event for events in self.lists for event in events]

    def ends(self) -> dict[int, Done | Failed]:
        ends = [event for event in self.events if isinstance(event, Done | Failed)]
        assert len(ends) == len({event.node for event in ends}), "two terminal events"
        return {event.node: event for event in ends}

    def answer(self, node: int, text: str, **changes: object) -> None:
        output = Output(
            f"run:{node}", text=text, finish_reason="stop", token_ids=tuple(text.encode())
        )
        self.engine.sinks[f"run:{node}"](replace(output, **changes))  # type: ignore[arg-type]

    def fail(self, node: int) -> None:
        self.answer(
            node, "", finish_reason="error", error_code="context_exceeded", error="9 > 8 tokens"
        )

    def run(self) -> None:
        while self.posted:
            self.posted.pop(0)()


def chain(*ops: Op, first: int = 0, branch: str = "") -> list[Node]:
    return [
        Node(first + i, op, first + i - 1 if first + i else None, branch=branch)
        for i, op in enumerate(ops)
    ]


def test_texts_finish_at_once_and_a_gen_waits_for_the_engine() -> None:
    bench = Bench()
    bench.session.submit(chain(Text("a"), Text(""), Text("b"), Gen("x"), Text("c")))
    assert bench.lists == [[Done(0, "a"), Done(1, ""), Done(2, "b"), Started(3)]]
    assert bench.engine.prompt("run:3") == list(b"ab")
    bench.answer(3, "XY", usage=Usage(2, 1, 2, 0.1, 0.2, 0.3), stop_reason=".")
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
            bench.engine.sinks["run:0"](Output("run:0", text=text))
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
    join = [Node(3, Value(2), 0, reads=(2,)), Node(4, Value(1), 3, reads=(1,)), Node(5, Gen(), 4)]
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
    bench.session.submit([Node(2, Value(1), 0, reads=(1,)), Node(3, Gen(), 2), Node(4, Gen(), 1)])
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
            Node(5, Value(1), 4, reads=(1,)),
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
        [*chain(Text("a"), Gen("x"), Gen("y")), Node(3, Gen("z"), 0), Node(4, Value(2), 3, (2,))]
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
        [Node(0, Value(0), None, reads=(0,))],
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


def test_a_select_takes_the_best_choice_and_goes_on_from_its_tokens() -> None:
    bench = Bench()
    bench.session.submit(chain(Text("Q "), Select("x", ("yes", "no")), Text("!"), Gen("y")))
    request = bench.engine.requests["run:1"]
    assert isinstance(request, ScoreRequest)
    assert [text.score_from for text in request.texts] == [2, 2]
    logprobs = ((-1.0, -1.0, -1.0), (-1.0, -0.5))
    bench.engine.sinks["run:1"](Output("run:1", finish_reason="stop", logprobs=logprobs))
    bench.run()
    done = bench.ends()[1]
    assert isinstance(done, Done)
    assert done.text == "no"
    assert done.meta.scores == pytest.approx({"yes": -3.0, "no": -1.5})
    assert sum(done.meta.probabilities.values()) == pytest.approx(1.0)
    assert bench.engine.prompt("run:3") == list(b"Q no!")


def test_a_select_with_one_empty_choice_needs_no_engine() -> None:
    bench = Bench()
    bench.session.submit(chain(Text("a"), Select("x", ("",)), Gen("y")))
    assert bench.engine.prompt("run:2") == list(b"a")


def seeds(bench: Bench) -> dict[str, int]:
    requests = bench.engine.requests.items()
    return {id: request.seed for id, request in requests if isinstance(request, Request)}


def test_a_seed_depends_on_the_place_alone() -> None:
    nodes = [
        Node(0, Gen("a"), None),
        Node(1, Gen("b"), None),
        Node(2, Gen("c"), None, branch="0.0"),
        Node(3, Gen("d", seed=0), None),
    ]
    whole, cut = Bench(), Bench()
    whole.session.submit(nodes)
    for node in nodes:
        cut.session.submit([node])
    assert seeds(whole) == seeds(cut)
    assert len(set(seeds(whole).values())) == 4
    assert seeds(whole)["run:3"] == 0
    assert all(0 <= seed < 1 << 63 for seed in seeds(whole).values())
    assert place_seed(7, "", 0) == seeds(whole)["run:0"] != place_seed(8, "", 0)


def test_sampling_is_the_nodes_over_the_runs_over_the_runtimes() -> None:
    own = Sampling(temperature=0.0, max_tokens=0, stop=())
    run = Sampling(temperature=0.5, max_tokens=9, top_k=4, stop=("x",))
    assert sampling_params(own, run) == SamplingParams(max_tokens=0, temperature=0.0, top_k=4)
    assert sampling_params(Sampling(), Sampling()) == SamplingParams()


def test_constraints_become_grammars() -> None:
    bench = Bench()
    bench.session.submit(
        [Node(0, Gen(regex="[0-9]+"), None), Node(1, Gen(choices=("a", "b")), None)]
    )
    grammars = [
        (request.grammar.kind, request.grammar.source)
        for request in bench.engine.requests.values()
        if isinstance(request, Request) and request.grammar is not None
    ]
    assert grammars == [("regex", ("[0-9]+",)), ("choices", ("a", "b"))]


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
