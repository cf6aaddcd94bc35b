"""Select on the real engine, against its definition by brute force."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from plait.interpreter.backend import Done
from plait.lang.ops import Gen, Select, SelectMethod, Text

from .scripted_runs import Run, chain, scripted


def biased(text: str) -> Mapping[str, float]:
    """Give next characters by the last one alone: a model without context."""
    weights = {c: 1.0 + (ord(text[-1:] or "?") * 7 + ord(c) * 13) % 11 for c in "abc "}
    total = sum(weights.values())
    return {c: weight / total for c, weight in weights.items()}


def logprob(text: str, more: str) -> float:
    return sum(math.log(biased((text + more[:i])[-1:])[c]) for i, c in enumerate(more))


CHOICES = ("a", "ab", "ac", "cab", "b ", "")


def reference(prompt: str, method: SelectMethod) -> dict[str, float]:
    """Score by the definition, straight from the model's function."""
    rows = {
        choice: [logprob(prompt + choice[:i], choice[i]) for i in range(len(choice))]
        for choice in CHOICES
    }
    following = {
        choice: {
            other[len(choice)]
            for other in CHOICES
            if len(other) > len(choice) and other.startswith(choice)
        }
        for choice in CHOICES
    }
    end = {
        choice: math.log(1 - sum(math.exp(logprob(prompt + choice, c)) for c in following[choice]))
        for choice in CHOICES
    }
    if method == "sum":
        return {choice: sum(rows[choice]) + end[choice] for choice in CHOICES}
    if method == "unconditional_likelihood_normalized":
        for choice in CHOICES:
            bare = [logprob("<|bos|>" + choice[:i], choice[i]) for i in range(len(choice))]
            rows[choice] = [a - b for a, b in zip(rows[choice], bare, strict=True)]
    return {c: sum(rows[c]) / len(rows[c]) if rows[c] else end[c] for c in CHOICES}


@pytest.mark.parametrize("prompt", ["a", "cab c", "b" * 40 + "c"])
@pytest.mark.parametrize(
    "method", ["sum", "token_length_normalized", "unconditional_likelihood_normalized"]
)
def test_select_scores_are_the_brute_force_ones(prompt: str, method: SelectMethod) -> None:
    with scripted(biased) as backend:
        done = Run(backend).results(chain(Text(prompt), Select("x", CHOICES, method)))[1]
    assert isinstance(done, Done)
    expected = reference(prompt, method)
    assert done.meta.scores == pytest.approx(expected, abs=1e-4)
    assert done.text == max(CHOICES, key=expected.__getitem__)
    assert sum(done.meta.probabilities.values()) == pytest.approx(1.0)
    if method == "sum":  # the choices' shares of the probability of any of them
        total = sum(map(math.exp, expected.values()))
        shares = {choice: math.exp(score) / total for choice, score in expected.items()}
        assert done.meta.probabilities == pytest.approx(shares, abs=1e-4)


def test_text_long_before_the_choices_changes_no_score_of_a_model_without_context() -> None:
    with scripted(biased) as backend:
        scores = []
        for start in ("a" * 100, "c b" * 7, ""):
            nodes = chain(Text(start + "abc abc abc abc abc abc "), Select("x", CHOICES))
            done = Run(backend).results(nodes)[1]
            assert isinstance(done, Done)
            scores.append(done.meta.scores)
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert scores[0] == pytest.approx(scores[2], abs=1e-4)


def test_greedy_selection_walks_token_by_token() -> None:
    def script(text: str) -> Mapping[str, float]:
        return {"d": 0.6, "p": 0.4} if text.endswith("? ") else {"o": 0.05, "u": 0.9, "e": 0.05}

    choices = ("do", "pu", "de")
    with scripted(script) as backend:
        greedy = Select("x", choices, "greedy_token_selection")
        assert Run(backend).text(chain(Text("? "), greedy)) == "? do"
        assert Run(backend).text(chain(Text("? "), Select("x", choices))) == "? pu"


def test_a_gen_after_a_select_goes_on_from_the_winner() -> None:
    with scripted(lambda text: {"b": 1.0} if text == "a" else {"": 1.0}) as backend:
        assert Run(backend).text(chain(Text("a"), Select("x", ("c", "b")), Gen("y"))) == "ab"
