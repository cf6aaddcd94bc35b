"""The executor: what a gen and a select ask of the engine."""

from __future__ import annotations

import pytest

from plait.interpreter.backend import Done
from plait.interpreter.lowering import sampling_params
from plait.interpreter.seeds import place_seed
from plait.lang.graph import Node
from plait.lang.ops import Constraint, Gen, Sampling, Select, Text
from plait.runtime.sequence import Output, Request, SamplingParams, ScoreRequest

from .bench import Bench, chain


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
        [
            Node(0, Gen(constraint=Constraint(regex="[0-9]+")), None),
            Node(1, Gen(constraint=Constraint(choices=("a", "b"))), None),
        ]
    )
    grammars = [
        (request.grammar.kind, request.grammar.source)
        for request in bench.engine.requests.values()
        if isinstance(request, Request) and request.grammar is not None
    ]
    assert grammars == [("regex", ("[0-9]+",)), ("choices", ("a", "b"))]
