"""How select decides."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.interpreter.choices import decide, end_logprobs, softmax
from plait.lang.ops import SelectMethod

METHODS: tuple[SelectMethod, ...] = (
    "sum",
    "token_length_normalized",
    "greedy_token_selection",
    "unconditional_likelihood_normalized",
)


def log(*probabilities: float) -> list[float]:
    return [math.log(p) for p in probabilities]


def test_sum_gives_each_choice_its_probability_among_the_choices() -> None:
    decision = decide("sum", [[1], [2, 3]], [log(0.2), log(0.6, 0.5)])
    assert decision.winner == 1
    assert decision.probabilities == pytest.approx([0.4, 0.6])


def test_sum_ends_a_choice_that_begins_others_by_what_they_leave() -> None:
    # After token 1 the model goes on with 2 (0.3) or 3 (0.1): 0.6 is left to end there.
    tokens = [[1], [1, 2], [1, 3, 4]]
    decision = decide("sum", tokens, [log(0.5), log(0.5, 0.3), log(0.5, 0.1, 1.0)])
    assert decision.scores == pytest.approx(log(0.5 * 0.6, 0.5 * 0.3, 0.5 * 0.1))
    assert decision.winner == 0


def test_two_choices_that_go_on_alike_take_their_common_token_once() -> None:
    tokens = [[1], [1, 2, 3], [1, 2, 4]]
    ends = end_logprobs(tokens, [log(0.5), log(0.5, 0.3, 0.5), log(0.5, 0.3, 0.5)])
    assert ends == pytest.approx([math.log(0.7), 0.0, 0.0])


def test_an_end_without_any_probability_left_is_still_a_number() -> None:
    decision = decide("sum", [[1], [1, 2]], [[0.0], [0.0, 0.0]])
    assert decision.winner == 1
    assert all(map(math.isfinite, decision.scores))


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_choice_is_scored_by_its_end_alone(method: SelectMethod) -> None:
    without = [[], [-1.0]] if method == "unconditional_likelihood_normalized" else ()
    decision = decide(method, [[], [1]], [[], log(0.3)], without)
    assert decision.winner == (1 if without else 0)
    if not without and method != "greedy_token_selection":
        assert decision.scores[0] == pytest.approx(math.log(0.7))


@pytest.mark.parametrize("method", METHODS)
def test_a_single_empty_choice_wins(method: SelectMethod) -> None:
    decision = decide(method, [[]], [[]], [[]])
    assert (decision.winner, decision.probabilities) == (0, (1.0,))


@pytest.mark.parametrize("method", METHODS)
def test_ties_go_to_the_first_listed(method: SelectMethod) -> None:
    rows = [log(0.25, 0.5)] * 3
    decision = decide(method, [[1, 2], [3, 4], [5, 6]], rows, rows)
    assert decision.winner == 0
    assert decision.probabilities == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("method", METHODS)
def test_equal_tokens_under_two_names_do_no_harm(method: SelectMethod) -> None:
    rows = [log(0.5)] * 2
    assert decide(method, [[1], [1]], rows, rows).winner == 0


def test_length_normalised_takes_the_mean() -> None:
    decision = decide("token_length_normalized", [[1], [2, 3, 4]], [[-1.0], [-2.0, -0.2, -0.2]])
    assert decision.scores == pytest.approx([-1.0, -0.8])
    assert decision.winner == 1


def test_greedy_takes_the_first_token_first() -> None:
    tokens = [[1, 2], [3, 4], [1, 5]]
    rows = [[-1.0, -5.0], [-1.5, -0.1], [-1.0, -3.0]]
    decision = decide("greedy_token_selection", tokens, rows)
    assert decision.winner == 2
    assert decision.scores == pytest.approx([-2.0, -0.5, 0.0])


def test_greedy_pads_a_short_choice_by_its_mean() -> None:
    decision = decide("greedy_token_selection", [[1], [1, 2]], [[-1.0], [-1.0, -2.0]])
    assert decision.winner == 0


def test_unconditional_takes_out_what_is_likely_anyway() -> None:
    decision = decide(
        "unconditional_likelihood_normalized",
        [[1], [2]],
        [[-1.0], [-1.5]],
        [[-0.5], [-3.0]],
    )
    assert decision.scores == pytest.approx([-0.5, 1.5])
    assert decision.winner == 1


@pytest.mark.parametrize("method", METHODS)
def test_impossible_tokens_give_finite_numbers(method: SelectMethod) -> None:
    rows = [[-math.inf], [-math.inf], [-1.0]]
    decision = decide(method, [[1], [2], [3]], rows, [[-math.inf], [-1.0], [-1.0]])
    assert math.isclose(sum(decision.probabilities), 1.0)
    assert all(map(math.isfinite, decision.scores))


@settings(derandomize=True, max_examples=100)
@given(
    tokens=st.lists(
        st.lists(st.integers(0, 2), max_size=4).map(tuple), min_size=1, max_size=6, unique=True
    ),
    seed=st.integers(0, 2**16),
)
def test_sum_equals_the_walk_of_a_trie_whose_leaves_are_the_choices(
    tokens: list[tuple[int, ...]], seed: int
) -> None:
    def row(prefix: tuple[int, ...]) -> list[float]:
        weights = [1 + hash((seed, prefix, token)) % 97 for token in range(4)]  # 3: any other
        return [weight / sum(weights) for weight in weights]

    logprobs = [[math.log(row(ids[:i])[ids[i]]) for i in range(len(ids))] for ids in tokens]
    expected = []
    for ids in tokens:
        score = math.prod(row(ids[:i])[ids[i]] for i in range(len(ids)))
        following = {
            other[len(ids)]
            for other in tokens
            if len(other) > len(ids) and other[: len(ids)] == ids
        }
        expected.append(math.log(score * (1 - sum(row(ids)[token] for token in following))))
    decision = decide("sum", tokens, logprobs)
    assert decision.scores == pytest.approx(expected)
    assert sum(map(math.exp, decision.scores)) <= 1 + 1e-9
    assert decision.probabilities == pytest.approx(softmax(expected))
