"""On the default model: the cache, the chunks, the blocks and the batch change no answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from plait.runtime.config import EngineConfig
from plait.runtime.engine import Engine
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.model.interface import Model, Runner
from plait.runtime.model.native import NativeRunner
from plait.runtime.model.registry import load_model
from plait.runtime.model.runner import TorchRunner
from plait.runtime.sequence import Output, Request, SamplingParams, ScoredText, ScoreRequest

pytestmark = pytest.mark.slow

GREEDY = SamplingParams(temperature=0.0, max_tokens=8, ignore_eos=True)
# The sums of a pass depend on how many rows it has; in fp32 that moves a log-probability by 1e-5.
TOLERANCE = 1e-4

SHARED = (
    "The river rises in the hills behind the old town, runs past the mill and the two bridges, "
    "and turns north where the road to the harbour begins. In spring it floods the meadows, "
)
PROMPTS = tuple(
    SHARED + end
    for end in (
        "and the farmers",
        "and the children of the town",
        "so that nobody",
        "In the year 1848 a stone was set where the water stood. On it",
    )
)
OTHERS = (
    "Once upon a time, in a country far away,",
    "def fibonacci(n):\n    ",
    "The capital of France is",
    "Water boils at a temperature of",
)

Make = Callable[..., Engine]


@dataclass(frozen=True)
class Answer:
    """The tokens that follow a prompt, and the log-probabilities of prompt and tokens."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]


@pytest.fixture(scope="module")
def make() -> Make:
    """Give engines on the default model, which is read once."""
    stored = Store(default_home()).find(DEFAULT_MODEL)
    if stored is None:
        pytest.skip(f"needs `plait pull {DEFAULT_MODEL}`")
    model = load_model(stored.path, EngineConfig(kv_cache_tokens=64))

    def engine(**options: object) -> Engine:
        config = EngineConfig(kv_cache_tokens=4096, max_context=1024, **options)  # type: ignore[arg-type]
        return Engine(replace(model, runner=_runner(model, config)), config)

    return engine


def _runner(model: Model, config: EngineConfig) -> Runner:
    """Give a runner of the same kind over the same weights."""
    if isinstance(model.runner, NativeRunner):
        return NativeRunner(model.runner._weights, model.runner._library, config)
    assert isinstance(model.runner, TorchRunner)
    return TorchRunner(model.runner._model, config)


@pytest.fixture(scope="module")
def reference(make: Make) -> dict[str, Answer]:
    """Answer each prompt alone, cold, in one chunk, without a cache."""
    engine = make(is_prefix_caching=False)
    return {prompt: answers(engine, [prompt])[prompt] for prompt in (*PROMPTS, *OTHERS)}


def drain(engine: Engine, requests: Iterable[Request | ScoreRequest]) -> dict[str, Output]:
    """Run requests together; check after each step."""
    for request in requests:
        engine.add(request)
    ends: dict[str, Output] = {}
    while engine.has_work:
        ends |= {o.request_id: o for o in engine.step() if o.finish_reason is not None}
        engine.check()
    assert not any(output.error for output in ends.values())
    return ends


def answers(engine: Engine, prompts: Iterable[str]) -> dict[str, Answer]:
    """Continue all prompts together, then score all of them with what followed."""
    ids = {p: np.array(engine.model.tokenizer.encode(p), np.int32) for p in prompts}
    found = drain(engine, [Request(p, tokens, GREEDY) for p, tokens in ids.items()])
    wholes = {
        p: np.concatenate([tokens, np.array(found[p].token_ids, np.int32)])
        for p, tokens in ids.items()
    }
    scores = [ScoreRequest(p, (ScoredText(whole, 1),)) for p, whole in wholes.items()]
    scored = drain(engine, scores)
    return {p: Answer(found[p].token_ids, scored[p].logprobs[0]) for p in ids}


def assert_equal(found: dict[str, Answer], reference: dict[str, Answer]) -> None:
    """Compare tokens exactly, log-probabilities to the tolerance."""
    for prompt, answer in found.items():
        assert answer.token_ids == reference[prompt].token_ids, prompt
        assert answer.logprobs == pytest.approx(reference[prompt].logprobs, abs=TOLERANCE)


@pytest.mark.parametrize("token_budget", [7, 512])
@pytest.mark.parametrize("block_size", [1, 16, 64])
def test_warm_answers_are_the_cold_ones(
    make: Make, reference: dict[str, Answer], block_size: int, token_budget: int
) -> None:
    engine = make(block_size=block_size, token_budget=token_budget)
    first, *rest = PROMPTS
    assert_equal(answers(engine, [first]), reference)  # cold
    cold_tokens = engine.stats().num_cached_tokens
    for prompt in rest:  # share the beginning, which ends inside a block
        assert_equal(answers(engine, [prompt]), reference)
    num_shared = len(engine.model.tokenizer.encode(SHARED)) - 1
    assert engine.stats().num_cached_tokens - cold_tokens >= len(rest) * num_shared
    again = drain(engine, [_ask(engine, first)])[first]  # the whole prompt is cached
    assert again.usage.cached_tokens == again.usage.prompt_tokens - 1
    assert again.token_ids == reference[first].token_ids


@pytest.mark.parametrize("token_budget", [7, 512])
@pytest.mark.parametrize("block_size", [1, 16, 64])
def test_a_cached_prefix_changes_no_log_probability(
    make: Make, reference: dict[str, Answer], block_size: int, token_budget: int
) -> None:
    engine = make(block_size=block_size, token_budget=token_budget)
    drain(engine, [_ask(engine, PROMPTS[0])])
    for prompt in PROMPTS:
        tokens = np.array(engine.model.tokenizer.encode(prompt), np.int32)
        start = len(engine.model.tokenizer.encode(SHARED))
        end = drain(engine, [ScoreRequest(prompt, (ScoredText(tokens, start),))])[prompt]
        assert end.usage.cached_tokens >= start - 1
        expected = reference[prompt].logprobs[start - 1 : len(tokens) - 1]
        assert end.logprobs[0] == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize("is_prefix_caching", [True, False])
def test_eight_at_once_answer_as_each_alone(
    make: Make, reference: dict[str, Answer], is_prefix_caching: bool
) -> None:
    engine = make(is_prefix_caching=is_prefix_caching)
    assert_equal(answers(engine, [*PROMPTS, *OTHERS]), reference)


def test_eight_equal_prompts_at_once_answer_alike(make: Make, reference: dict[str, Answer]) -> None:
    engine = make()
    requests = [replace(_ask(engine, PROMPTS[0]), id=f"r{i}") for i in range(8)]
    found = {output.token_ids for output in drain(engine, requests).values()}
    assert found == {reference[PROMPTS[0]].token_ids}


def _ask(engine: Engine, prompt: str) -> Request:
    return Request(prompt, np.array(engine.model.tokenizer.encode(prompt), np.int32), GREEDY)
