"""Choices in the default model's own tokens: prefixes of each other, tokens across the border."""

from __future__ import annotations

import math
import queue
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from plait import Function, State, function, gen, select
from plait.interpreter.backends.local import LocalBackend
from plait.interpreter.result import Result
from plait.runtime.config import EngineConfig
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.loop import EngineThread
from plait.runtime.model.registry import load_model
from plait.runtime.sequence import Output, ScoredText, ScoreRequest

pytestmark = pytest.mark.slow


class Bench:
    """The default model in this process, and its own numbers."""

    def __init__(self) -> None:
        stored = Store(default_home()).find(DEFAULT_MODEL)
        if stored is None:
            pytest.skip(f"needs `plait pull {DEFAULT_MODEL}`")
        config = EngineConfig(kv_cache_tokens=4096, max_context=1024)
        self.model = load_model(stored.path, config)
        self._engine = EngineThread(self.model, config)
        self.backend = LocalBackend(self.model, config, self._engine)

    def encode(self, text: str) -> list[int]:
        return self.model.tokenizer.encode(text)

    def run(self, program: Function, seed: int = 0) -> Result:
        return program.run(backend=self.backend, seed=seed)

    def logprobs(self, text: str, following: Sequence[int]) -> list[float]:
        """Give log P of each of `following` after `text`, each by a request of its own."""
        before = self.encode(text)
        rows = [[*before, *following[: i + 1]] for i in range(len(following))]
        return [self._last_logprob(row) for row in rows]

    def _last_logprob(self, token_ids: list[int]) -> float:
        ends: queue.Queue[Output] = queue.Queue()
        text = ScoredText(np.array(token_ids, np.int32), len(token_ids) - 1)
        self._engine.submit(ScoreRequest("reference", (text,)), ends.put)
        return ends.get(timeout=60).logprobs[0][0]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.backend.close()


def test_the_same_choices_again_cost_no_pass_and_give_the_same_bits(bench: Bench) -> None:
    labels = [
        f" {a} {b}" for a in ("card", "cash", "loan") for b in ("lost", "late", "fee", "limit")
    ]
    program = chooser("I cannot find it any more. Intent:", *labels)
    first = bench.run(program).meta("x")
    num_steps = bench.backend.stats().num_steps
    again = bench.run(program).meta("x")
    assert bench.backend.stats().num_steps == num_steps
    assert again.scores == first.scores
    assert again.usage.cached_tokens == again.usage.prompt_tokens == first.usage.prompt_tokens


def chooser(prompt: str, *choices: str) -> Function:
    @function
    def choose(s: State) -> None:
        s += prompt
        s += select("x", choices)

    return choose


def scores(bench: Bench, prompt: str, *choices: str) -> dict[str, float]:
    result = bench.run(chooser(prompt, *choices))
    found = dict(result.meta("x").scores)
    assert result["x"] == max(choices, key=found.__getitem__)
    return found


def test_a_choice_whose_tokens_begin_another_ends_by_what_the_other_leaves(bench: Bench) -> None:
    prompt = "Is the sky blue? Answer:"
    short, long = bench.encode(" yes"), bench.encode(" yes, it is")
    assert long[: len(short)] == short
    found = scores(bench, prompt, " yes", " yes, it is", " no")
    row = bench.logprobs(prompt, long)
    end = math.log1p(-math.exp(row[len(short)]))
    assert found[" yes"] == pytest.approx(sum(row[: len(short)]) + end, abs=1e-4)
    assert found[" yes, it is"] == pytest.approx(sum(row), abs=1e-4)
    assert found[" no"] == pytest.approx(sum(bench.logprobs(prompt, bench.encode(" no"))), abs=1e-4)


def test_a_choice_whose_text_alone_begins_another_has_tokens_of_its_own(bench: Bench) -> None:
    prompt = "The word is: "
    choices = ("inter", "internet", "in")
    joint = {choice: bench.encode(prompt + choice) for choice in choices}
    assert len({tuple(ids) for ids in joint.values()}) == 3
    assert len({len(ids) for ids in joint.values()}) == 1  # each one token, the blank in it
    found = scores(bench, prompt, *choices)
    for choice, ids in joint.items():
        expected = bench.logprobs("The word is:", ids[-1:])
        assert found[choice] == pytest.approx(sum(expected), abs=1e-4)


def test_a_token_that_crosses_the_border_counts_to_the_choice(bench: Bench) -> None:
    prompt, choices = "Nobody saw her so unh", ("appy", "urt")
    joint = [bench.encode(prompt + choice) for choice in choices]
    alone = bench.encode(prompt)
    border = next(i for i, pair in enumerate(zip(*joint, strict=False)) if len(set(pair)) > 1)
    assert border < len(alone)  # the last token of the prompt is not in what the choices make
    before = bytes(b for i in alone[:border] for b in bench.model.tokenizer.token_bytes[i] or b"")
    found = scores(bench, prompt, *choices)
    for choice, ids in zip(choices, joint, strict=True):
        expected = bench.logprobs(before.decode(), ids[border:])
        assert found[choice] == pytest.approx(sum(expected), abs=1e-4)


def test_a_choice_that_ends_inside_a_token_of_another_is_scored_alone(bench: Bench) -> None:
    prompt, choices = "In Japanese: ", ("\u65e5", "\u65e5\u672c")
    joint = [bench.encode(prompt + choice) for choice in choices]
    result = bench.run(chooser(prompt, *choices))
    assert result["x"] in choices
    assert sum(result.meta("x").probabilities.values()) == pytest.approx(1.0)
    assert joint[0] != joint[1]


@pytest.mark.parametrize(
    ("prompt", "choices"),
    [
        ("Is the sky blue? Answer:", (" yes", " yes, it is")),
        ("The word is: ", ("in", "inter", "internet", "interne")),
        ("Nobody saw her so unh", ("appy", "app", "a")),
        ("In Japanese: ", ("\u65e5", "\u65e5\u672c", "\u65e5\u672c\u8a9e")),
        ("The answer is", (" 1", " 10", " 100", " 1000")),
    ],
)
def test_a_gen_of_choices_gives_one_of_them_whatever_is_drawn(
    bench: Bench, prompt: str, choices: tuple[str, ...]
) -> None:
    @function
    def write(s: State) -> None:
        s += prompt
        s += gen("x", choices=choices, temperature=50.0, max_tokens=20)

    found = [bench.run(write, seed) for seed in range(12)]
    assert {result["x"] for result in found} <= set(choices)
    assert {result.meta("x").finish_reason for result in found} == {"stop"}
    assert len({result["x"] for result in found}) > 1
