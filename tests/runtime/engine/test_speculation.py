"""Speculation changes no answer, only the number of passes."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from plait.runtime.errors import RequestError
from plait.runtime.plan import Plan
from plait.runtime.sequence import (
    Batch,
    Output,
    Request,
    SamplingParams,
    ScoredText,
    ScoreRequest,
)
from plait.runtime.speculation import planner

from .bench import GREEDY, ask, check_idle, collect
from .cases import Case, answer, compiled, compiled_for, finish, random_request
from .grammars import Digits
from .words import TOKENIZER, habits

LOOP = replace(GREEDY, max_tokens=60, ignore_eos=True)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draft all that can be guessed, likely or not."""
    monkeypatch.setattr(planner, "_num_paying", lambda offers, *_: len(offers))
    monkeypatch.setattr(planner, "MIN_REACH", 0.0)


def test_a_text_that_repeats_itself_takes_fewer_passes() -> None:
    plain, drafting = habits(max_draft_tokens=0), habits()
    for engine in (plain, drafting):
        engine.add(ask("a", "say: ", LOOP))
    expected, found = finish(plain)["a"], finish(drafting)["a"]
    assert answer(found) == answer(expected)
    usage, stats = found.last.usage, drafting.stats()
    assert usage.accepted_tokens == plain.stats().num_steps - stats.num_steps > 20
    assert usage.accepted_tokens <= usage.drafted_tokens
    assert (stats.num_drafted_tokens, stats.num_accepted_tokens) == (
        usage.drafted_tokens,
        usage.accepted_tokens,
    )
    assert plain.stats().num_drafted_tokens == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_on_and_off_give_the_same_answers(seed: int, eager: None) -> None:
    case = Case.of(seed)
    expected = case.run(habits(max_draft_tokens=0))
    drafting = habits(block_size=(1, 16, 32, 64)[seed % 4])
    assert case.run(drafting) == expected
    assert case.run(drafting) == expected, "with a warm cache"
    for budget in (1, 3, 7):
        assert case.run(habits(token_budget=budget)) == expected
    assert case.run(habits(jump_forward=False)) == expected
    assert case.run(habits(is_prefix_caching=False)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("is_prefix_caching", [True, False])
def test_a_pool_that_is_too_small_changes_nothing_but_time(
    is_prefix_caching: bool, eager: None
) -> None:
    for seed in range(12):
        case = Case.of(seed, count=6)
        expected = case.run(habits(max_draft_tokens=0))
        longest = max(int(str(a[-2])) + int(str(a[-1])) for a in expected.values())
        small = {
            "block_size": 1,
            "num_blocks": longest + 2,
            "token_budget": 12,
            "is_prefix_caching": is_prefix_caching,
        }
        plain, drafting = habits(max_draft_tokens=0, **small), habits(**small)
        assert case.run(plain) == case.run(drafting) == expected


def test_no_guess_costs_a_sequence_its_blocks(eager: None) -> None:
    requests = [ask(f"r{i}", "na" * 4, replace(LOOP, temperature=0.5), seed=i) for i in range(4)]
    counts = []
    for max_draft in (0, 8):
        engine = habits(max_draft_tokens=max_draft, block_size=1, num_blocks=80)
        for request in requests:
            engine.add(request)
        while engine.has_work:
            engine.step()
            engine.check()
            tables = [s for job in engine._jobs.values() for s in job.sequences]
            assert all(len(s.block_table) == s.num_computed_tokens for s in tables)
        counts.append(engine.stats().num_preemptions)
    assert counts[0] >= counts[1] > 0, "the pool is too small for all four"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_company_and_aborts(seed: int, eager: None) -> None:
    rng = random.Random(f"aborts {seed}")
    requests = [random_request(f"r{i}", rng) for i in range(8)]
    requests = [_bounded(request) for request in requests]
    grammars = [g for _, g in Case.of(seed, count=8).requests]
    expected: dict[str, tuple[object, ...]] = {}
    for request, grammar in zip(requests, grammars, strict=True):
        alone = habits(max_draft_tokens=0)
        alone.add(request, compiled_for(alone, request, grammar))
        expected |= {name: answer(r) for name, r in finish(alone).items()}
    engine = habits(
        block_size=rng.choice([1, 4, 16]),
        num_blocks=rng.choice([160, 512]),
        token_budget=rng.choice([2, 5, 9, 64]),
        max_running=rng.choice([2, 8]),
    )
    outputs: list[Output] = []
    pending = list(zip(requests, grammars, strict=True))
    aborted = set()
    while engine.has_work or pending:
        if pending and rng.random() < 0.4:
            request, grammar = pending.pop()
            engine.add(request, compiled_for(engine, request, grammar))
        if rng.random() < 0.05:
            aborted.add(name := f"r{rng.randrange(8)}")
            engine.abort(name)
        outputs += engine.step()
        engine.check()
    check_idle(engine)
    for name, result in collect(outputs).items():
        if result.last.finish_reason == "cancelled":
            assert name in aborted
            assert str(expected[name][0]).startswith(result.text)
        else:
            assert answer(result) == expected[name]


def _bounded(request: Request) -> Request:
    if request.sampling.max_tokens is not None:
        return request
    return replace(request, sampling=replace(request.sampling, max_tokens=50))


@pytest.mark.parametrize("count", range(1, 20))
def test_max_tokens_cuts_a_draft(count: int, eager: None) -> None:
    whole = _run(SamplingParams(temperature=0.0, max_tokens=60, ignore_eos=True))
    cut = _run(SamplingParams(temperature=0.0, max_tokens=count, ignore_eos=True))
    assert cut.token_ids == whole.token_ids[:count]
    assert (cut.finish_reason, cut.usage.output_tokens) == ("length", count)
    assert cut.usage.accepted_tokens < count


def _run(sampling: SamplingParams) -> Output:
    engine = habits()
    engine.add(ask("a", "say: ", sampling))
    return finish(engine)["a"].last


def test_guesses_that_a_grammar_forbids_take_no_row(eager: None) -> None:
    engine = habits()
    engine.add(ask("a", "ab 12 ab 12 ab 12 ab", LOOP), compiled("regex", "[ab]{40}"))
    scheduler, drafts = engine._scheduler, list[tuple[int, ...]]()
    take_back = scheduler.take_back

    def watch(plan: Plan) -> None:
        drafts.extend(chunk.draft for chunk in plan.chunks)
        take_back(plan)

    scheduler.take_back = watch  # type: ignore[method-assign]
    result = finish(engine)["a"]
    assert result.text.strip("ab") == ""
    allowed = {i for i, data in enumerate(TOKENIZER.token_bytes) if data and not data.strip(b"ab")}
    assert set().union(*drafts) <= allowed
    assert result.last.usage.accepted_tokens > 5


def test_drafts_go_on_over_what_a_grammar_forces(eager: None) -> None:
    records = r'(?:\{"name": "[ab]{2}", "yes": true\}){5}'
    counts = []
    for max_draft in (0, 32):
        engine = habits(max_draft_tokens=max_draft)
        engine.add(
            ask("a", '{"name": "', replace(LOOP, max_tokens=200)), compiled("regex", records)
        )
        result = finish(engine)["a"]
        counts.append((result.text, engine.stats().num_steps))
    (plain_text, plain_steps), (text, steps) = counts
    assert text == plain_text
    assert steps < plain_steps / 2, "forced tokens and the drawn ones between are one draft"


class Broken(Digits):
    """A grammar with a fault that only a guess meets: it cannot take a letter."""

    fault: Exception = ZeroDivisionError()

    def matcher(self) -> Broken:
        return self.fork()

    def fork(self) -> Broken:
        copy = Broken(self.count, self.seen)
        copy.fault = self.fault
        return copy

    def accept(self, token_id: int) -> bool:
        if not chr(token_id).isdigit():
            raise self.fault
        return super().accept(token_id)


LETTERS_AND_DIGITS = "x".join("0123456789" * 3)


def test_a_bug_that_only_a_guess_meets_harms_nobody(eager: None) -> None:
    plain, engine = habits(max_draft_tokens=0), habits()
    for each in (plain, engine):
        each.add(ask("a", LETTERS_AND_DIGITS), Broken(6))
        each.add(ask("b", "say: ", LOOP))
    expected, found = finish(plain), finish(engine)
    assert len(found["a"].text) == 6
    assert [answer(found[name]) for name in "ab"] == [answer(expected[name]) for name in "ab"]
    assert found["b"].last.usage.accepted_tokens > 0, "the others still have their drafts"


def test_a_bug_that_a_guess_meets_is_logged_once_and_counted(
    eager: None, caplog: pytest.LogCaptureFixture
) -> None:
    engine = habits()
    engine.add(ask("a", LETTERS_AND_DIGITS), Broken(6))
    finish(engine)
    (record,) = caplog.records
    assert "'a'" in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)
    assert engine.stats().num_draft_faults == 1


def test_a_budget_that_a_guess_meets_is_counted_and_is_no_bug(
    eager: None, caplog: pytest.LogCaptureFixture
) -> None:
    engine, grammar = habits(), Broken(6)
    grammar.fault = RequestError("grammar_budget", "grammar too large")
    engine.add(ask("a", LETTERS_AND_DIGITS), grammar)
    assert len(finish(engine)["a"].text) == 6
    assert caplog.records == []
    assert engine.stats().num_draft_faults == 1


def test_a_failing_pass_with_drafts_leaves_nothing_behind(eager: None) -> None:
    engine = habits()
    runner = engine.model.runner
    run = runner.run
    engine.add(ask("a", "say: ", LOOP))
    while engine._jobs["a"].num_drafted_tokens < 20:
        engine.step()

    def fail(batch: Batch) -> torch.Tensor:
        assert len(batch.token_ids) > 1
        raise OSError("the device is gone")

    runner.run = fail  # type: ignore[method-assign]
    (output,) = engine.step()
    engine.check()
    assert (output.finish_reason, output.error_code) == ("error", "internal")
    runner.run = run  # type: ignore[method-assign]
    engine.add(ask("b", "say: ", LOOP))
    plain = habits(max_draft_tokens=0)
    plain.add(ask("b", "say: ", LOOP))
    assert answer(finish(engine)["b"]) == answer(finish(plain)["b"])


def test_wrong_guesses_never_reach_the_cache(eager: None) -> None:
    plain, drafting = habits(max_draft_tokens=0, block_size=4), habits(block_size=4)
    sampling = replace(LOOP, temperature=2.0)
    for engine in (plain, drafting):
        for seed in range(4):
            engine.add(ask(f"r{seed}", "na" * 9, sampling, seed))
        finish(engine)
    assert drafting.stats().num_drafted_tokens > drafting.stats().num_accepted_tokens
    assert drafting.stats().num_cached_blocks == plain.stats().num_cached_blocks


def test_scores_get_no_drafts(eager: None) -> None:
    engine = habits()
    text = ScoredText(np.array(TOKENIZER.encode("na" * 20), np.int32), 3)
    engine.add(ScoreRequest("a", (text,)))
    finish(engine)
    assert engine.stats().num_computed_tokens == len(text.token_ids) - 1


def test_only_the_own_kernels_draft_unless_it_is_asked_for() -> None:
    engine = habits(max_draft_tokens=None)
    engine.add(ask("a", "say: ", LOOP))
    finish(engine)
    assert engine.stats().num_drafted_tokens == 0


def test_a_step_with_many_outputs_gets_no_drafts() -> None:
    counts = []
    for num in (2, planner.MAX_OUTPUTS + 1):
        engine = habits()
        for i in range(num):
            engine.add(ask(f"r{i}", "say: ", LOOP))
        finish(engine)
        counts.append(engine.stats().num_drafted_tokens)
    assert counts[0] > 0 == counts[1]
