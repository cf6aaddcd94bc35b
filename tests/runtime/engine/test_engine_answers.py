"""Memory, cache, chunks and neighbours change no answer: K02, K03, K08 and K12."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.runtime.engine import Engine
from plait.runtime.sequence import (
    Output,
    ScoredText,
    ScoreRequest,
)

from .bench import WILD, Result, answers, ask, collect, drain, ids, make
from .grammars import Digits


# K02
@pytest.mark.parametrize("is_first_aborted", [False, True])
def test_equal_prompts_at_once_answer_as_in_series(is_first_aborted: bool) -> None:
    shared = "".join(chr(97 + i % 26) for i in range(300))
    requests = [ask(f"same{i}", shared, WILD, seed=i) for i in range(8)]
    requests += [ask(f"part{i}", shared[:200] + str(i) * 50, WILD, seed=i) for i in range(8)]
    serial: dict[str, object] = {}
    for request in requests:
        serial |= answers(drain(make(is_caching=False), request))
    engine = make(budget=64)
    for request in requests:
        engine.add(request)
    outputs: list[Output] = []
    for _ in range(3):
        outputs += engine.step()
        engine.check()
    if is_first_aborted:
        engine.abort("same0")
        serial.pop("same0")
    while engine.has_work:
        outputs += engine.step()
        engine.check()
    found = answers(collect(outputs))
    if is_first_aborted:
        found.pop("same0")
    assert found == serial


# K03
@pytest.mark.parametrize("is_caching", [True, False])
def test_preemption_changes_nothing_but_time(is_caching: bool) -> None:
    def run(num_blocks: int) -> tuple[dict[str, Result], Engine]:
        engine = make(block_size=4, num_blocks=num_blocks, is_caching=is_caching)
        for i in range(6):
            sampling = replace(WILD, max_tokens=40, min_tokens=10 * i)
            engine.add(ask(f"r{i}", f"prompt no. {i}", sampling, seed=i))
        engine.add(replace(ask("digits", "give digits!", replace(WILD, max_tokens=40))), Digits(30))
        text = ids("score this text, which is long")
        results = drain(engine, ScoreRequest("score", (ScoredText(text, 12), ScoredText(text, 20))))
        return results, engine

    small, small_engine = run(20)
    large, large_engine = run(1000)
    assert small_engine.stats().num_preemptions > 0
    assert large_engine.stats().num_preemptions == 0
    assert answers(small) == answers(large)
    assert small["digits"].text.isdigit()
    for name, result in small.items():
        one, other = result.last.usage, large[name].last.usage
        assert (one.prompt_tokens, one.output_tokens) == (other.prompt_tokens, other.output_tokens)
        assert one.cached_tokens <= one.prompt_tokens
    assert small_engine.stats().num_output_tokens == large_engine.stats().num_output_tokens


# K08
@pytest.mark.slow
@pytest.mark.parametrize("budget", [16, 64, 2000])
@pytest.mark.parametrize("at_once", [1, 3, 8])
def test_warm_answers_equal_cold_ones(budget: int, at_once: int) -> None:
    prompts = [f"{'common ' * (i % 4)}question {i} " * 3 for i in range(30)]
    requests = [ask(f"r{i}", p, WILD, seed=i) for i, p in enumerate(prompts)]
    scores = [ScoreRequest(f"s{i}", (ScoredText(ids(p), 5),)) for i, p in enumerate(prompts)]
    everything = [r for pair in zip(requests, scores, strict=True) for r in pair]
    cold = answers(drain(make(is_caching=False), *everything))
    engine = make(budget=budget)
    for _ in range(2):
        for start in range(0, len(everything), at_once):
            some = answers(drain(engine, *everything[start : start + at_once]))
            assert some == {name: cold[name] for name in some}
    assert engine.stats().num_cached_tokens > 1000


# K12
def test_seeds_decide_and_nothing_else() -> None:
    def run(*seeds: int, budget: int = 512) -> dict[str, object]:
        engine = make(budget=budget)
        return answers(drain(engine, *(ask(f"{s}", "roll the dice", WILD, seed=s) for s in seeds)))

    four = run(1, 2, 3, 4)
    assert len(set(map(str, four.values()))) == 4
    assert run(1, 2, 3, 4, budget=3) == four
    assert run(3)["3"] == four["3"]


def test_a_grammar_sees_the_output_only() -> None:
    engine = make(budget=7)
    engine.add(ask("a", "12 34 56 " * 11), Digits(3))
    result = drain(engine)["a"]
    assert (len(result.text), result.text.isdigit()) == (3, True)
    assert result.last.finish_reason == "stop"
