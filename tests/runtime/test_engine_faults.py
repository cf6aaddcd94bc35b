"""What users have suffered in other engines: K02 to K12 of the catalogue of faults."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from plait.runtime.config import EngineConfig
from plait.runtime.engine import Engine
from plait.runtime.errors import RequestError
from plait.runtime.grammar.spec import Bitmask
from plait.runtime.model.scripted import IM_END, Script, scripted_model
from plait.runtime.sequence import (
    Int32,
    Output,
    Request,
    SamplingParams,
    ScoredText,
    ScoreRequest,
)

GREEDY = SamplingParams(temperature=0.0)
WILD = SamplingParams(temperature=1.5, max_tokens=24, ignore_eos=True)


def ids(text: str) -> Int32:
    return np.frombuffer(text.encode(), np.uint8).astype(np.int32)


def ask(name: str, prompt: str, sampling: SamplingParams = GREEDY, seed: int = 0) -> Request:
    return Request(name, ids(prompt), sampling, seed=seed)


def echo(text: str) -> str:
    return f"you said {text[-12:]}"


def make(
    script: Script = echo,
    *,
    block_size: int = 16,
    num_blocks: int = 512,
    max_context: int = 2048,
    width: int | None = None,
    budget: int = 512,
    max_running: int = 64,
    max_waiting: int = 1000,
    is_caching: bool = True,
) -> Engine:
    model = scripted_model(
        script,
        block_size=block_size,
        num_blocks=num_blocks,
        max_context=max_context,
        logits_width=width,
    )
    config = EngineConfig(
        token_budget=budget,
        max_running=max_running,
        max_waiting=max_waiting,
        is_prefix_caching=is_caching,
    )
    return Engine(model, config)


@dataclass
class Result:
    """All outputs of one request."""

    text: str
    last: Output


def drain(engine: Engine, *requests: Request | ScoreRequest) -> dict[str, Result]:
    """Add all at once, run until idle, check after each step."""
    for request in requests:
        engine.add(request)
    outputs: list[Output] = []
    while engine.has_work:
        outputs += engine.step()
        engine.check()
    return collect(outputs)


def collect(outputs: Iterable[Output]) -> dict[str, Result]:
    texts: dict[str, str] = {}
    results: dict[str, Result] = {}
    for output in outputs:
        assert output.request_id not in results, "an output after the terminal one"
        texts[output.request_id] = texts.get(output.request_id, "") + output.text
        if output.finish_reason is not None:
            results[output.request_id] = Result(texts[output.request_id], output)
    return results


def answers(results: dict[str, Result]) -> dict[str, object]:
    """What must not depend on memory, cache, chunks or neighbours."""
    return {
        name: (r.text, r.last.token_ids, r.last.finish_reason, r.last.logprobs)
        for name, r in results.items()
    }


class Digits:
    """A grammar of exactly `count` digits: the compiled one and the matcher in one."""

    size_bytes = 0

    def __init__(self, count: int, seen: str = "") -> None:
        self.count = count
        self.seen = seen

    def matcher(self) -> Digits:
        return Digits(self.count)

    def fork(self) -> Digits:
        return Digits(self.count, self.seen)

    def fill_bitmask(self, row: Bitmask) -> None:
        row[:] = 0
        allowed = [IM_END] if self.is_accepting else list(range(ord("0"), ord("9") + 1))
        for token_id in allowed:
            row.view(np.uint32)[token_id // 32] |= np.uint32(1 << token_id % 32)

    def accept(self, token_id: int) -> bool:
        self.seen += chr(token_id)
        return self.seen.isdigit() and len(self.seen) <= self.count

    def rollback(self, num_tokens: int) -> None:
        self.seen = self.seen[: len(self.seen) - num_tokens]

    @property
    def is_accepting(self) -> bool:
        return len(self.seen) == self.count

    @property
    def is_finished(self) -> bool:
        return self.is_accepting

    def forced(self) -> bytes:
        return b""


class Costly(Digits):
    """A grammar whose mask takes more than its budget at the second token."""

    def matcher(self) -> Digits:
        return Costly(self.count)

    def fill_bitmask(self, row: Bitmask) -> None:
        if self.seen:
            raise RequestError("grammar_budget", "grammar too large: a repeat {1,9}")
        super().fill_bitmask(row)


def test_a_mask_over_its_budget_fails_its_own_request_alone() -> None:
    engine = make()
    engine.add(ask("costly", "abc", GREEDY), Costly(3))
    engine.add(ask("plain", "abc", GREEDY))
    results = drain(engine)
    assert results["costly"].last.error_code == "grammar_budget"
    assert results["plain"].last.finish_reason == "stop"


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
    assert small_engine.stats().preemptions > 0
    assert large_engine.stats().preemptions == 0
    assert answers(small) == answers(large)
    assert small["digits"].text.isdigit()
    for name, result in small.items():
        one, other = result.last.usage, large[name].last.usage
        assert (one.prompt_tokens, one.output_tokens) == (other.prompt_tokens, other.output_tokens)
        assert one.cached_tokens <= one.prompt_tokens
    assert small_engine.stats().output_tokens == large_engine.stats().output_tokens


# K05
@pytest.mark.parametrize("at_step", [0, 1, 4, 5, 6, 7, 9])
def test_an_abort_near_the_end_is_harmless(at_step: int) -> None:
    engine = make(lambda _: "four")
    engine.add(ask("a", "hello"))
    outputs: list[Output] = []
    for step in range(12):
        if step == at_step:
            engine.abort("a")
            engine.abort("a")
            engine.abort("never seen")
        outputs += engine.step()
        engine.check()
    engine.abort("a")
    assert len([o for o in outputs if o.finish_reason]) == 1
    assert engine.step() == []
    requests = [ask(f"r{i}", f"hello {i}", WILD, seed=i) for i in range(20)]
    assert answers(drain(engine, *requests)) == answers(drain(make(lambda _: "four"), *requests))


# K06
def test_a_random_mix_leaves_nothing_behind() -> None:
    engine = make(num_blocks=60, max_context=300, max_running=8, budget=64)
    rng = random.Random(7)
    live: list[weakref.ref[Int32]] = []
    terminal: list[str] = []
    accepted: list[str] = []
    refused: set[str] = set()
    for i in range(200):
        prompt = ("shared " * 10 if rng.random() < 0.5 else "") + f"request {i}"
        kind = rng.choice(["plain", "plain", "abort", "long", "double", "score"])
        request: Request | ScoreRequest = ask(f"r{i}", prompt, WILD, seed=i)
        if kind == "long":
            request = ask(f"r{i}", "x" * 400)
        if kind == "score":
            request = ScoreRequest(f"r{i}", (ScoredText(ids(prompt), 3), ScoredText(ids("hi"), 1)))
        try:
            engine.add(request)
            accepted.append(request.id)
            if kind == "double":
                engine.add(request)
        except RequestError as e:
            refused.add(e.code)
        if isinstance(request, Request):
            live.append(weakref.ref(request.prompt))
        for _ in range(rng.randrange(3)):
            terminal += [o.request_id for o in engine.step() if o.finish_reason]
            engine.check()
        if kind == "abort" or rng.random() < 0.1:
            engine.abort(rng.choice(accepted))
    while engine.has_work:
        terminal += [o.request_id for o in engine.step() if o.finish_reason]
        engine.check()
    request = ask("none", "none")
    gc.collect()
    stats = engine.stats()
    assert sorted(terminal) == sorted(accepted)
    assert (stats.held_blocks, stats.locked_blocks) == (0, 0)
    assert all(prompt() is None for prompt in live)
    assert stats.finished + stats.aborted == len(accepted)
    assert refused == {"context_exceeded", "duplicate_id"}
    engine.reset_cache()
    assert engine.stats().free_blocks == 60


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
    assert engine.stats().cached_tokens > 1000


# K09
def test_the_odd_one_out_is_not_starved() -> None:
    engine = make(lambda _: "x" * 8, max_running=4)
    finished: list[str] = []
    for step in range(120):
        engine.add(ask(f"r{step}", "shared prefix " * 10 + str(step)))
        if step == 10:
            engine.add(ask("odd", "something else " * 10))
        finished += [o.request_id for o in engine.step() if o.finish_reason]
    assert "odd" in finished
    assert finished.index("odd") <= 12


def test_a_large_request_is_overtaken_but_not_for_ever() -> None:
    engine = make(lambda _: "x" * 30, num_blocks=24, max_running=4)
    finished: list[str] = []
    for step in range(900):
        if step % 8 == 0:
            engine.add(ask(f"r{step}", f"{step} small"))
        if step == 40:
            engine.add(ask("large", "y" * 330))
        finished += [o.request_id for o in engine.step() if o.finish_reason]
        engine.check()
    assert "large" in finished
    assert finished.index("large") < 64 + 20


def test_one_long_prompt_does_not_stop_the_decodes() -> None:
    engine = make(lambda _: "x" * 40, max_context=8192, budget=64)
    for i in range(3):
        engine.add(ask(f"short{i}", f"{i}"))
    engine.step()
    engine.add(ask("long", "y" * 4000))
    for _ in range(30):
        outputs = engine.step()
        assert {o.request_id for o in outputs} == {"short0", "short1", "short2"}


# K11
def test_a_live_id_is_refused_and_the_first_is_unharmed() -> None:
    engine = make()
    engine.add(ask("a", "hello"))
    with pytest.raises(RequestError, match="'a' is still running"):
        engine.add(ask("a", "other"))
    assert drain(engine)["a"].text == "you said hello"
    assert drain(engine, ask("a", "other"))["a"].text == "you said other"


def test_cancelled_requests_leave_their_slots_at_once() -> None:
    engine = make(lambda _: "x" * 900, max_running=2)
    for i in range(50):
        engine.add(ask(f"r{i}", f"hello {i}"))
        engine.step()
        engine.abort(f"r{i}")
    cancelled = collect(engine.step())
    assert {r.last.finish_reason for r in cancelled.values()} == {"cancelled"}
    assert not engine.has_work
    engine.add(ask("normal", "hello"))
    assert [o.text for o in engine.step()] == ["x"]


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
