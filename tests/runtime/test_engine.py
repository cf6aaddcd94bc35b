"""The engine serves requests on the scripted model, and accounts for every block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from plait.runtime.config import EngineConfig
from plait.runtime.engine import Engine
from plait.runtime.errors import RequestError
from plait.runtime.model.scripted import Script, scripted_model
from plait.runtime.sequence import (
    Batch,
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


def test_one_request_is_answered() -> None:
    result = drain(make(), ask("a", "hello there"))["a"]
    assert result.text == "you said hello there"
    assert result.last.finish_reason == "stop"
    assert bytes(result.last.token_ids).decode() == result.text
    assert result.last.usage.prompt_tokens == 11
    assert result.last.usage.output_tokens == len(result.text) + 1  # the end token is drawn too


def test_max_tokens_ends_with_length() -> None:
    result = drain(make(), ask("a", "hi", replace(GREEDY, max_tokens=3)))["a"]
    assert (result.text, result.last.finish_reason) == ("you", "length")


def test_max_tokens_zero_ends_at_once() -> None:
    engine = make()
    result = drain(engine, ask("a", "hi", replace(GREEDY, max_tokens=0)))["a"]
    assert (result.text, result.last.finish_reason) == ("", "length")
    assert engine.stats().steps == 0


def test_no_max_tokens_means_up_to_the_end_of_the_context() -> None:
    engine = make(lambda _: "x" * 500, max_context=64)
    result = drain(engine, ask("a", "hello"))["a"]
    assert (len(result.text), result.last.finish_reason) == (59, "length")


def test_a_stop_string_is_cut_off_and_named() -> None:
    sampling = replace(GREEDY, stop=("said",))
    result = drain(make(), ask("a", "hi", sampling))["a"]
    assert (result.text, result.last.stop_reason) == ("you ", "said")
    assert bytes(result.last.token_ids).decode() + result.last.tail == "you "


@pytest.mark.parametrize(
    ("request_", "code", "numbers"),
    [
        (ask("a", ""), "empty_prompt", ()),
        (ask("a", "x" * 100), "context_exceeded", ("100", "100")),
        (ask("a", "x" * 90), "pool_exceeded", ("90", "64")),
        (ask("a", "x" * 64), "pool_exceeded", ("64", "64")),
        (Request("a", np.array([5, 999], np.int32)), "invalid_request", ("258",)),
        (ScoreRequest("a", ()), "empty_prompt", ()),
        (ScoreRequest("a", (ScoredText(ids("abc"), 3),)), "invalid_request", ("3",)),
        (ScoreRequest("a", (ScoredText(ids("abc"), 0),)), "invalid_request", ("0",)),
    ],
)
def test_what_can_never_be_served_is_refused_at_once(
    request_: Request | ScoreRequest, code: str, numbers: tuple[str, ...]
) -> None:
    engine = make(num_blocks=4, max_context=100)
    with pytest.raises(RequestError) as caught:
        engine.add(request_)
    assert caught.value.code == code
    assert all(number in str(caught.value) for number in numbers)
    assert not engine.has_work


def test_a_full_queue_refuses() -> None:
    engine = make(max_waiting=2)
    engine.add(ask("a", "hi"))
    engine.add(ask("b", "hi"))
    with pytest.raises(RequestError, match="queue is full"):
        engine.add(ask("c", "hi"))
    assert set(drain(engine)) == {"a", "b"}
    assert set(drain(engine, ask("c", "hi"))) == {"c"}
    for name in "defg":
        engine.add(ask(name, "hi"))
        engine.abort(name)
        engine.step()


def test_64_equal_cold_prompts_are_prefilled_once() -> None:
    engine = make()
    prompt = "x" * 505 + "prompt!"
    results = drain(engine, *(ask(f"r{i}", prompt) for i in range(64)))
    num_outputs = len("you said ") + 12
    stats = engine.stats()
    assert stats.computed_tokens == 512 + 63 + 64 * num_outputs
    assert {r.text for r in results.values()} == {"you said xxxxxprompt!"}


def test_followers_share_what_a_leader_writes_in_the_same_step() -> None:
    engine = make(budget=1000)
    prompt = "x" * 250 + "here"
    drain(
        engine, *(ask(f"r{i}", prompt + f" {i}", replace(GREEDY, max_tokens=1)) for i in range(9))
    )
    assert engine.stats().steps == 1
    assert engine.stats().computed_tokens == len(prompt + " ") + 9


def test_without_caching_nothing_is_shared() -> None:
    engine = make(is_caching=False)
    drain(engine, *(ask(f"r{i}", "x" * 100, replace(GREEDY, max_tokens=1)) for i in range(5)))
    drain(engine, ask("again", "x" * 100, replace(GREEDY, max_tokens=1)))
    assert engine.stats().computed_tokens == 600
    assert engine.stats().cached_tokens == engine.stats().cached_blocks == 0


def test_the_next_turn_finds_prompt_and_output_in_the_cache() -> None:
    engine = make()
    first = drain(engine, ask("a", "tell me something"))["a"]
    second = drain(engine, ask("b", "tell me something" + first.text + " and more"))["b"]
    # All but the last drawn token (the end) was computed.
    assert second.last.usage.cached_tokens == len("tell me something" + first.text)


def test_namespaces_do_not_share() -> None:
    engine = make()
    drain(engine, ask("a", "a secret prompt"))
    spy = replace(ask("b", "a secret prompt"), namespace="other")
    assert drain(engine, spy)["b"].last.usage.cached_tokens == 0


def test_scores_equal_those_of_single_texts() -> None:
    prompt = "x" * 30 + "yes or no? "
    texts = [prompt + choice for choice in ("yes", "no", "yes, but", "n")]
    scored = tuple(ScoredText(ids(t), len(prompt)) for t in texts)
    together = drain(make(), ScoreRequest("s", scored))["s"].last
    alone = [drain(make(), ScoreRequest("s", (one,)))["s"].last.logprobs[0] for one in scored]
    assert [len(t) for t in together.logprobs] == [3, 2, 8, 1]
    assert np.allclose(np.concatenate(together.logprobs), np.concatenate(alone), atol=1e-6)
    assert together.usage.cached_tokens >= 3 * (len(prompt) - 1)


def test_scores_are_the_models_own() -> None:
    script = {"q": {"a": 0.75, "b": 0.25}, "qa": {"c": 0.5, "d": 0.5}}
    engine = make(lambda text: script.get(text, {"": 1.0}), width=320)
    request = ScoreRequest("s", (ScoredText(ids("qac"), 1), ScoredText(ids("qb"), 1)))
    found = drain(engine, request)["s"].last.logprobs
    assert found[0] == pytest.approx(np.log([0.75, 0.5]), abs=1e-5)
    assert found[1] == pytest.approx(np.log([0.25]), abs=1e-5)


@pytest.mark.parametrize("budget", [7, 64, 512])
def test_scores_do_not_depend_on_chunks(budget: int) -> None:
    request = ScoreRequest("s", (ScoredText(ids("abcdefghij" * 10), 1),))
    found = drain(make(budget=budget), request)["s"].last.logprobs
    assert found == drain(make(budget=2000), request)["s"].last.logprobs
    assert len(found[0]) == 99


def break_runner(engine: Engine) -> Callable[[], None]:
    """Let every pass fail before it stores anything, until what is given back is called."""
    runner = engine.model.runner
    real_run = runner.run

    def run(batch: Batch) -> torch.Tensor:
        raise OSError("the device fell over")

    def mend() -> None:
        runner.run = real_run  # type: ignore[method-assign]

    runner.run = run  # type: ignore[method-assign]
    return mend


def test_a_failing_model_fails_its_batch_and_no_more() -> None:
    engine = make()
    drain(engine, ask("before", "x" * 40))
    mend = break_runner(engine)
    prompts = ["x" * 40 + "w" * 40] * 2 + ["x" * 40 + "w" * 30 + "z"]
    results = drain(engine, *(ask(f"r{i}", prompt) for i, prompt in enumerate(prompts)))
    assert {r.last.error_code for r in results.values()} == {"internal"}
    assert "the device fell over" in results["r0"].last.error
    mend()
    after = drain(engine, *(ask(f"r{i}", prompt) for i, prompt in enumerate(prompts)))
    assert after["r0"].text == "you said " + "w" * 12
    assert after["r0"].last.usage.cached_tokens == 40
    assert engine.stats().failed == 3


def test_non_finite_logits_fail_one_row() -> None:
    engine = make()
    runner = engine.model.runner
    real_run = runner.run

    def run(batch: Batch) -> torch.Tensor:
        logits = real_run(batch)
        logits[1] = float("nan")
        return logits

    runner.run = run  # type: ignore[method-assign]
    engine.add(ask("a", "hello", replace(GREEDY, max_tokens=1)))
    engine.add(ask("b", "other", replace(GREEDY, max_tokens=1)))
    results = collect(engine.step())
    engine.check()
    assert results["a"].last.finish_reason == "length"
    assert results["b"].last.error_code == "non_finite_logits"


def test_a_request_that_outgrows_the_pool_alone_fails_and_frees_it() -> None:
    engine = make(lambda _: "x" * 500, num_blocks=4)
    result = drain(engine, ask("a", "hello"))["a"]
    assert result.last.error_code == "pool_exceeded"
    assert "64" in result.last.error
    assert drain(engine, ask("b", "hello", replace(GREEDY, max_tokens=5)))["b"].text == "xxxxx"
