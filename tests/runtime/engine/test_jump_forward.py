"""Jump-forward changes no answer, only the number of passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from plait.runtime.engine import Engine
from plait.runtime.errors import RequestError
from plait.runtime.plan import Plan
from plait.runtime.sequence import Output, SamplingParams, Sequence

from .bench import GREEDY, Result, ask, collect
from .cases import Case, answer, compiled
from .grammars import Digits
from .words import TOKENIZER, whims

RECORD = r'\{"name": "[ab]{1,3}", "yes": (?:true|false), "id": [0-9]{2}\}'


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_on_and_off_give_the_same_answers(seed: int) -> None:
    case = Case.of(seed)
    plain = whims(jump_forward=False)
    expected = case.run(plain)
    jumping = whims()
    assert case.run(jumping) == expected
    assert jumping.stats().num_steps <= plain.stats().num_steps
    assert jumping.stats().num_output_tokens == plain.stats().num_output_tokens
    assert plain.stats().num_forced_tokens == 0
    assert case.run(jumping) == expected, "with a warm cache"
    for budget in (1, 3, 7):
        assert case.run(whims(token_budget=budget)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("is_prefix_caching", [True, False])
def test_preemption_changes_nothing_but_time(is_prefix_caching: bool) -> None:
    num_preempted = 0
    for seed in range(30):
        case = Case.of(seed, count=6)
        expected = case.run(whims(jump_forward=False))
        longest = max(cast(int, a[-2]) + cast(int, a[-1]) for a in expected.values())
        small = Watched(longest + 2, token_budget=12, is_prefix_caching=is_prefix_caching)
        assert case.run(small.engine) == expected
        num_preempted += small.num_in_run
    assert num_preempted > 10, "none was preempted with forced tokens still to compute"


class Watched:
    """An engine that counts the preemptions in the middle of a forced run."""

    def __init__(self, num_blocks: int, **options: object) -> None:
        self.engine = whims(block_size=1, num_blocks=num_blocks, **options)
        self.num_in_run = 0
        scheduler = self.engine._scheduler
        preempt = scheduler._preempt

        def count(victim: Sequence, plan: Plan) -> None:
            is_output = victim.num_computed_tokens > victim.output_start
            self.num_in_run += is_output and not victim.is_decoding
            preempt(victim, plan)

        scheduler._preempt = count  # type: ignore[method-assign]


@pytest.mark.parametrize("jump_forward", [True, False])
@pytest.mark.parametrize("num_blocks", range(6, 60, 3))
def test_a_text_longer_than_the_pool_fails_in_the_same_place(
    num_blocks: int, jump_forward: bool
) -> None:
    engine = whims(block_size=1, num_blocks=num_blocks, jump_forward=jump_forward)
    pattern = r'ab, [ab], \{"name": "yes", "id": 123\}(?:no|--)'
    engine.add(ask("a", "say"), compiled("regex", pattern))
    found = answer(finish(engine)["a"])
    full = whims(jump_forward=jump_forward)
    full.add(ask("a", "say"), compiled("regex", pattern))
    text, token_ids, *_ = answer(finish(full)["a"])
    assert isinstance(text, str)
    assert isinstance(token_ids, tuple)
    if 3 + len(token_ids) <= num_blocks + 1:
        assert found[:2] == (text, token_ids)
    else:
        assert found[6] == "pool_exceeded"
        assert found[1] == token_ids[: num_blocks + 1 - 3]


def finish(engine: Engine) -> dict[str, Result]:
    outputs: list[Output] = []
    while engine.has_work:
        outputs += engine.step()
        engine.check()
    return collect(outputs)


def run_one(
    pattern: str, sampling: SamplingParams = GREEDY, **options: bool
) -> tuple[Result, Engine]:
    engine = whims(**options)
    engine.add(ask("a", "say: ", sampling), compiled("regex", pattern))
    return finish(engine)["a"], engine


def test_a_forced_text_takes_no_pass() -> None:
    result, engine = run_one("yes, name")
    assert (result.text, result.last.finish_reason) == ("yes, name", "stop")
    assert result.last.token_ids == tuple(TOKENIZER.encode("yes, name"))
    assert result.last.usage.forced_tokens == result.last.usage.output_tokens == 3
    assert result.last.usage.prompt_tokens == 5
    assert engine.stats().num_steps == 0
    assert engine.stats().num_finished == 1
    assert (engine.stats().num_output_tokens, engine.stats().num_forced_tokens) == (3, 3)


def test_the_prompt_and_what_is_forced_at_once_are_one_chunk() -> None:
    result, engine = run_one(r'\{"name":[01]')
    forced = len(TOKENIZER.encode('{"name":'))
    assert result.last.usage.forced_tokens == forced
    assert engine.stats().num_steps == 1
    assert engine.stats().num_computed_tokens == len("say: ") + forced


def test_fewer_passes_by_what_is_forced() -> None:
    on, jumping = run_one(RECORD)
    off, plain = run_one(RECORD, jump_forward=False)
    assert on.text == off.text
    num_forced = on.last.usage.forced_tokens
    assert num_forced > 5
    # The last token needs no pass in any case: it ends the text.
    assert plain.stats().num_steps - jumping.stats().num_steps in (num_forced, num_forced - 1)
    # No more does what was drawn before a run that ends the text.
    assert plain.stats().num_computed_tokens - jumping.stats().num_computed_tokens in (0, 1)


@pytest.mark.parametrize("count", range(14))
@pytest.mark.parametrize("jump_forward", [True, False])
def test_max_tokens_cuts_a_forced_text(count: int, jump_forward: bool) -> None:
    pattern = r'[ab], \{"name": "yes", "id": 123\}no'
    whole, _ = run_one(pattern)
    sampling = replace(GREEDY, max_tokens=count)
    result, _ = run_one(pattern, sampling, jump_forward=jump_forward)
    assert result.last.token_ids == whole.last.token_ids[:count]
    assert result.last.usage.output_tokens == min(count, len(whole.last.token_ids))
    is_whole = count >= len(whole.last.token_ids)
    assert result.last.finish_reason == ("stop" if is_whole else "length")


@pytest.mark.parametrize("jump_forward", [True, False])
def test_the_first_stop_string_in_a_forced_text_wins(jump_forward: bool) -> None:
    sampling = replace(GREEDY, stop=("true", "me", "name!"))
    result, engine = run_one("[ab], yes name true", sampling, jump_forward=jump_forward)
    assert (result.text[1:], result.last.stop_reason) == (", yes na", "me")
    assert result.last.tail == "na"
    assert result.last.usage.output_tokens == len(TOKENIZER.encode("a, yes name"))
    assert engine.stats().num_finished == 1


def test_the_text_of_forced_tokens_is_shown_at_once() -> None:
    engine = whims()
    engine.add(ask("a", "say: "), compiled("regex", r'\{"name": [ab], yes (?:no|true)'))
    given, drawn = engine.step()
    assert given.text == '{"name":'
    assert drawn.text in (" a, yes ", " b, yes ")


def test_a_look_ahead_over_its_budget_ends_its_request_alone() -> None:
    engine = whims()
    engine.add(ask("vast", "say: "), Vast(3))
    engine.add(ask("other", "say: "), compiled("regex", "[ab], yes"))
    found = finish(engine)
    assert found["vast"].last.error_code == "grammar_budget"
    assert found["other"].text[1:] == ", yes"


class Vast(Digits):
    """A grammar that cannot say what it forces."""

    def matcher(self) -> Digits:
        return Vast(self.count)

    def forced_tokens(
        self, last_id: int | None, encode: Callable[[str], object]
    ) -> tuple[int, ...]:
        raise RequestError("grammar_budget", "grammar too large")


def test_an_abort_in_the_middle_of_a_forced_run_gives_all_back() -> None:
    engine = whims(token_budget=2)
    engine.add(ask("a", "say: "), compiled("regex", r'[ab]{2}, \{"name": "yes", "id": 123\}[ab]'))
    while engine.stats().num_forced_tokens == 0:
        engine.step()
    engine.step()
    engine.check()
    engine.abort("a")
    result = finish(engine)["a"]
    assert result.last.finish_reason == "cancelled"
    assert result.last.usage.forced_tokens > 2
    assert (engine.stats().num_held_blocks, engine.stats().num_running) == (0, 0)


def test_decodes_go_before_chunks_of_forced_tokens() -> None:
    engine = whims(token_budget=2)
    engine.add(ask("plain", "say", replace(GREEDY, max_tokens=40)), None)
    engine.add(ask("forced", "say"), compiled("regex", r"[ab]" + r'\{"name": "yes"\}' * 5 + "[ab]"))
    num_output = 0
    while engine.stats().num_running == 2 or num_output == 0:
        before = num_output
        num_output = engine._jobs["plain"].generation.num_tokens  # type: ignore[union-attr]
        engine.step()
        if before > 2 and "plain" in engine._jobs:
            after = engine._jobs["plain"].generation.num_tokens  # type: ignore[union-attr]
            assert after == num_output + 1, "a decode waited for a chunk"
