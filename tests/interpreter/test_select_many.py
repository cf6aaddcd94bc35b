"""Two hundred labels: one request, the winner of brute force, and no pass the second time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import plait
from plait import State, function, select
from plait.interpreter.backends.scripted import ScriptedBackend
from plait.interpreter.calls import Call, Calls
from plait.runtime.sequence import Request, ScoreRequest

LABELS = (Path(__file__).parents[2] / "examples/data/intents.txt").read_text().splitlines()
LETTERS = sorted(set("".join(LABELS)))


def weighed(text: str) -> Mapping[str, float]:
    """Give next characters by the last two, so that labels are not alike."""
    seed = sum(ord(char) * factor for char, factor in zip(text[-2:], (7, 31), strict=False))
    weights = {char: 1.0 + (seed * 13 + ord(char) * 29) % 23 for char in LETTERS}
    total = sum(weights.values())
    return {char: weight / total for char, weight in weights.items()}


def brute_force(prompt: str) -> dict[str, float]:
    """Score each label by itself, its end by what no other label goes on with."""
    scores = {}
    for label in LABELS:
        steps = [math.log(weighed(prompt + label[:i])[c]) for i, c in enumerate(label)]
        others = [x for x in LABELS if x.startswith(label) and x != label]
        after = weighed(prompt + label)
        taken = sum(after[char] for char in {other[len(label)] for other in others})
        scores[label] = sum(steps) + math.log(1 - taken)
    return scores


@pytest.fixture
def backend() -> Iterator[ScriptedBackend]:
    opened = plait.scripted(weighed)
    assert isinstance(opened, ScriptedBackend)
    yield opened
    opened.close()


@function
def classify(s: State, query: str) -> None:
    s += f"Query: {query}\nIntent: "
    s += select("x", LABELS, top=5)


def test_labels_that_begin_each_other_are_scored_as_by_brute_force(
    backend: ScriptedBackend,
) -> None:
    assert len(LABELS) == len(set(LABELS)) == 200
    for query in ("card stolen", "where is my salary", "x"):
        result = classify.run(query=query, backend=backend)
        expected = brute_force(f"Query: {query}\nIntent: ")
        ranking = sorted(LABELS, key=lambda label: -expected[label])
        assert result["x"] == ranking[:5]
        meta = result.meta("x")
        assert meta.scores == pytest.approx(expected, abs=1e-3)
        assert math.fsum(meta.probabilities.values()) == pytest.approx(1, abs=1e-12)


def test_they_are_one_request_and_the_second_time_no_pass(
    backend: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[Request | ScoreRequest] = []
    start = Calls.start

    def counting(self: Calls, call: Call, request: Request | ScoreRequest) -> None:
        requests.append(request)
        start(self, call, request)

    monkeypatch.setattr(Calls, "start", counting)
    first = classify.run(query="hello", backend=backend)
    stats = backend.stats()
    beginnings = {label[:i] for label in LABELS for i in range(len(label))}
    prompt = "Query: hello\nIntent: "
    assert stats.num_computed_tokens == len(prompt) - 1 + len(beginnings)
    again = classify.run(query="hello", backend=backend)
    assert backend.stats().num_computed_tokens == stats.num_computed_tokens
    assert again.meta("x").scores == first.meta("x").scores
    assert len(requests) == 2
