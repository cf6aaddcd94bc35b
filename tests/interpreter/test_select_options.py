"""What select makes of its probabilities: the best, several, a draw, or nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import plait
from plait import Backend, InvalidArgument, State, function, select
from plait.interpreter.choices import Decision, choose
from plait.lang.serialize import dumps, loads

LABELS = ("a", "b", "c", "d")
SHARES = {"a": 0.1, "b": 0.4, "c": 0.3, "d": 0.2}


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = plait.scripted(lambda prompt: SHARES)
    yield opened
    opened.close()


@function
def ask(s: State, options: dict[str, Any]) -> None:
    s += "label: "
    s += select("x", LABELS, **options)
    s += "."


def result_of(backend: Backend, seed: int = 0, **options: Any) -> plait.Result:
    return ask.run(options=options, backend=backend, seed=seed)


def test_top_gives_the_best_in_order_and_the_text_goes_on_from_the_first(
    backend: Backend,
) -> None:
    result = result_of(backend, top=3)
    assert result["x"] == ["b", "c", "d"]
    assert result.text() == "label: b."
    assert result_of(backend, top=9)["x"] == ["b", "c", "d", "a"]


def test_equal_choices_come_in_their_own_order() -> None:
    with_ties = plait.scripted(lambda prompt: {"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25})
    assert result_of(with_ties, top=4)["x"] == list(LABELS)
    with_ties.close()


def test_probabilities_sum_to_one_over_the_list_whatever_the_options(backend: Backend) -> None:
    several: tuple[dict[str, Any], ...]
    several = ({}, {"top": 2}, {"temperature": 0.5}, {"abstain_below": 0.9})
    for options in several:
        probabilities = result_of(backend, **options).meta("x").probabilities
        assert math.fsum(probabilities.values()) == pytest.approx(1, abs=1e-12)
        assert probabilities == pytest.approx(SHARES, abs=1e-6)


def test_a_select_that_abstains_appends_nothing_and_says_so(backend: Backend) -> None:
    result = result_of(backend, abstain_below=0.5)
    assert result["x"] is None
    assert result.text() == "label: ."
    assert result.meta("x").finish_reason == "abstained"
    assert result_of(backend, abstain_below=0.5, top=2)["x"] == []


def test_a_best_choice_that_is_likely_enough_is_taken(backend: Backend) -> None:
    assert result_of(backend, abstain_below=0.39)["x"] == "b"
    assert result_of(backend, abstain_below=0.39, top=2)["x"] == ["b", "c"]


def test_draws_follow_the_probabilities(backend: Backend) -> None:
    rows = [{"options": {"temperature": 1.0}} for _ in range(400)]
    drawn = Counter(r["x"] for r in ask.run_batch(rows, backend=backend, seed=3))
    for label, share in SHARES.items():
        assert abs(drawn[label] / 400 - share) < 0.08  # over three standard deviations


@pytest.mark.parametrize("temperature", [0.25, 1.0, 4.0])
def test_a_temperature_is_a_power_of_the_probabilities(temperature: float) -> None:
    scores = tuple(math.log(share) for share in SHARES.values())
    decision = Decision(1, scores, tuple(SHARES.values()))
    powers = [share ** (1 / temperature) for share in SHARES.values()]
    count = 10_000
    drawn = Counter(choose(decision, temperature, i / count) for i in range(count))
    for i, power in enumerate(powers):
        assert drawn[i] / count == pytest.approx(power / sum(powers), abs=2 / count)


def test_the_same_seed_draws_the_same_and_another_branch_draws_anew(backend: Backend) -> None:
    @function
    def branches(s: State) -> list[str]:
        forks = s.fork(24)
        forks += select("x", LABELS, temperature=2.0)
        found: list[str] = forks.join()["x"]
        return found

    first = branches.run(backend=backend, seed=5).value
    assert first == branches.run(backend=backend, seed=5).value
    assert len(set(first)) > 1
    assert first != branches.run(backend=backend, seed=6).value
    own = {"temperature": 2.0, "seed": 1}
    fixed = {ask.run(options=own, backend=backend, seed=seed)["x"] for seed in range(9)}
    assert len(fixed) == 1


def test_a_recorded_graph_draws_and_abstains_as_the_run_did(backend: Backend) -> None:
    for options in ({"temperature": 2.0}, {"abstain_below": 0.9}, {"top": 2}):
        result = result_of(backend, 7, **options)
        again = plait.run_graph(loads(dumps(result.graph)), backend=backend, seed=7)
        assert (again["x"], again.text()) == (result["x"], result.text())


def test_a_draw_more_changes_no_gen(backend: Backend) -> None:
    @function
    def program(s: State, is_drawing: bool) -> None:
        branch = s.copy()
        branch += select("x", LABELS, temperature=1.0 if is_drawing else None)
        s += plait.gen("y", max_tokens=12)

    texts = {program.run(d, backend=backend, seed=1)["y"] for d in (False, True)}
    assert len(texts) == 1


def test_a_reference_is_the_text_that_was_appended(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += select("x", LABELS, top=2) + "|"
        s += s.ref("x")

    assert program.run(backend=backend).text() == "b|b"


def test_a_trace_ends_where_python_needs_a_list_of_choices() -> None:
    @function
    def program(s: State) -> None:
        s += select("x", LABELS, top=2)
        s += s["x"][0]

    (found,) = program.trace().breaks
    assert found.name == "x"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"top": 0}, "top=0"),
        ({"top": 1.5}, "top=1.5"),
        ({"temperature": -1}, "temperature=-1"),
        ({"abstain_below": 1.5}, "abstain_below=1.5"),
        ({"top": 2, "temperature": 1.0}, "leave one of them out"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_options_without_meaning_are_refused_at_the_line(
    options: Mapping[str, Any], part: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        select("x", LABELS, **options)
    assert part in str(caught.value)
    assert "test_select_options.py" in str(caught.value)
