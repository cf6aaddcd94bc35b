"""A segment may say what is known of its nodes: the engine is asked for the rest alone."""

from __future__ import annotations

import pytest

from plait.interpreter.backend import Done, Failed, GenTokens, NodeMeta
from plait.lang.ops import Gen, Sampling, Select, Text

from .bench import Bench
from .scripted_runs import chain

NODES = chain(
    Text("a b"), Gen("x", Sampling(heal=False)), Text("c"), Gen("y", Sampling(heal=False))
)


def test_a_known_gen_is_done_at_once_and_goes_on_by_its_tokens() -> None:
    bench = Bench()
    meta = NodeMeta("stop", "!")
    bench.session.submit(NODES, [Done(1, "shown", meta, GenTokens((7, 8)))])
    assert bench.ends()[1] == Done(1, "shown", meta)
    assert list(bench.engine.requests) == ["run:3"]
    assert bench.engine.prompt("run:3") == [*b"a b", 7, 8, *b"c"]


def test_a_known_healed_gen_replaces_the_prompts_last_token() -> None:
    bench = Bench()
    bench.session.submit(NODES, [Done(1, "b!", tokens=GenTokens((98, 33), " ", is_healed=True))])
    assert bench.engine.prompt("run:3") == [*b"a ", *b"b!", *b" c"]


def test_a_known_gen_counts_for_the_seeds_of_those_after_it() -> None:
    known, unknown = Bench(), Bench()
    known.session.submit(NODES, [Done(1, "x", tokens=GenTokens((120,)))])
    unknown.session.submit(NODES)
    unknown.answer(1, "x")
    unknown.run()
    seeds = [bench.engine.requests["run:3"].seed for bench in (known, unknown)]  # type: ignore[union-attr]
    assert seeds[0] == seeds[1]


def test_a_known_select_appends_its_choice() -> None:
    bench = Bench()
    nodes = chain(Text("a"), Select("x", ("yes", "no")), Gen("y", Sampling(heal=False)))
    bench.session.submit(nodes, [Done(1, "no")])
    assert bench.engine.prompt("run:2") == [*b"ano"]


@pytest.mark.parametrize(
    ("node", "known", "message"),
    [
        (Gen("x"), Done(1, "x"), "no tokens"),
        (Gen("x"), Done(1, "x", tokens=GenTokens((10**6,))), "1000000"),
        (Gen("x"), Done(1, "x", tokens=GenTokens((-1,))), "-1"),
        (Select("x", ("yes", "no")), Done(1, "maybe"), "no choice"),
    ],
)
def test_a_known_outcome_that_cannot_be_is_refused(
    node: Gen | Select, known: Done, message: str
) -> None:
    bench = Bench()
    bench.session.submit(chain(Text("a"), node, Gen("y")), [known])
    failed = bench.ends()[1]
    assert isinstance(failed, Failed)
    assert failed.code == "invalid_request"
    assert message in failed.message


def test_tokens_are_told_where_the_session_keeps_them() -> None:
    bench = Bench(keeps_tokens=True)
    bench.session.submit(NODES[:2])
    bench.answer(1, "hey", tail="!")
    bench.run()
    done = bench.ends()[1]
    assert isinstance(done, Done)
    assert done.tokens == GenTokens(tuple(b"hey"), "!")
