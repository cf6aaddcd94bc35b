"""The best of several branches, and a beam: fork and score."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import cast

import pytest

import plait
from plait import Backend, InvalidArgument, LogProb, State, beam, best_of, function, gen, select

from .scripted_runs import counted_segments

SHARES = {"a": 0.5, "b": 0.3, "c": 0.2}


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = plait.scripted(lambda prompt: SHARES)
    yield opened
    opened.close()


def likelihood(text: str) -> float:
    return sum(math.log(SHARES[char]) for char in text)


def write(branch: State) -> None:
    branch += gen("x", max_tokens=3)


def test_the_likeliest_branch_is_the_best(backend: Backend) -> None:
    @function
    def program(s: State) -> tuple[str, str]:
        s += "Q:"
        best = best_of(s, 6, write, score="x")
        best += "!"
        return best["x"], best.text()

    result = program.run(backend=backend, seed=1)
    x, text = result.value
    assert likelihood(x) == max(map(likelihood, result["x"]))
    assert text == f"Q:{x}!"
    assert result.text() == "Q:"


def test_a_function_says_what_a_branch_is_worth(backend: Backend) -> None:
    @function
    def program(s: State) -> str:
        s += "Q:"
        best: str = best_of(s, 6, write, score=lambda b: b["x"].count("c"))["x"]
        return best

    result = program.run(backend=backend, seed=2)
    assert result.value.count("c") == max(x.count("c") for x in result["x"])


def test_of_equals_the_first_is_taken(backend: Backend) -> None:
    @function
    def program(s: State) -> bool:
        s += "Q:"
        branches: list[State] = []

        def body(branch: State) -> None:
            write(branch)
            branches.append(branch)

        return best_of(s, 3, body, score=lambda _: 1.0) is branches[0]

    assert program.run(backend=backend).value


def test_bodies_and_scores_of_all_branches_go_in_two_segments(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = counted_segments(monkeypatch)

    def worth(branch: State) -> LogProb:
        return branch.score("abc")

    @function
    def program(s: State) -> None:
        s += "Q:"
        best_of(s, 5, write, score=worth)
        best_of(s, 5, write, score="x")

    program.run(backend=backend)
    assert segments == [1 + 2 * 5, 2 * 5]


def choose(branch: State) -> None:
    branch += select("step", list(SHARES), temperature=1.0)


def test_a_beam_keeps_the_best_of_each_step(backend: Backend) -> None:
    steps: list[list[str]] = []

    @function
    def program(s: State) -> list[str]:
        s += "Q:"
        seen: list[State] = []

        def body(branch: State) -> None:
            choose(branch)
            seen.append(branch)

        kept = beam(s, 2, 3, body, score="step", expand=4)
        texts = [state.text()[2:] for state in seen]
        steps.extend([t for t in texts if len(t) == length] for length in (1, 2, 3))
        return [state.text()[2:] for state in kept]

    found = program.run(backend=backend, seed=3).value
    assert [len(step) for step in steps] == [4, 8, 8]
    kept = [""]
    for step in steps:
        assert {text[:-1] for text in step} == set(kept)
        kept = sorted(step, key=likelihood, reverse=True)[:2]
    assert [likelihood(text) for text in found] == pytest.approx(list(map(likelihood, kept)))


def test_a_beam_over_every_step_finds_the_best_of_all(backend: Backend) -> None:
    @function
    def program(s: State) -> str:
        s += "Q:"
        letters = itertools.cycle("cab")

        def body(branch: State) -> None:
            branch += next(letters)

        def worth(branch: State) -> float:
            return likelihood(branch.text()[2:])

        return beam(s, 9, 2, body, score=worth, expand=3)[0].text()

    assert program.run(backend=backend).value == "Q:aa"


def test_a_finished_branch_grows_no_further_and_may_stay(backend: Backend) -> None:
    @function
    def program(s: State) -> list[str]:
        s += "Q:"
        letters = itertools.cycle("ab.")

        def body(branch: State) -> None:
            branch += next(letters)

        def is_done(branch: State) -> bool:
            return branch.text().endswith(".")

        def worth(branch: State) -> float:
            return branch.text().count(".") * 10 + branch.text().count("a")

        kept = beam(s, 2, 3, body, score=worth, expand=3, is_done=is_done)
        return [state.text() for state in kept]

    # The second of step 1 grows to "a.", which is worth more than the "." of step 1.
    assert program.run(backend=backend).value == ["Q:a.", "Q:."]


@pytest.mark.parametrize(
    "call",
    [
        lambda s: best_of(s, 0, write, score="x"),
        lambda s: beam(s, 0, 1, write, score="x"),
        lambda s: beam(s, 1, 0, write, score="x"),
        lambda s: beam(s, 1, 1, write, score="x", expand=0),
        lambda s: best_of(s, cast(int, None), write, score="x"),
    ],
)
def test_numbers_without_meaning_are_refused_at_the_line(
    backend: Backend, call: Callable[[State], object]
) -> None:
    @function
    def program(s: State) -> None:
        s += "Q:"
        call(s)

    with pytest.raises(InvalidArgument, match=r"test_search.py:\d+: (best_of|beam)\(...\): "):
        program.run(backend=backend)
