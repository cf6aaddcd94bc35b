"""Guesses follow the text, and are believed as far as they came true."""

from __future__ import annotations

import numpy as np
import pytest

from plait.runtime.errors import RequestError
from plait.runtime.speculation.follower import Follower
from plait.runtime.speculation.guesser import CHANCES, Guess, Guesser
from plait.runtime.speculation.planner import PASS_COSTS, _num_paying, _Offer, pass_cost

from .cases import compiled
from .words import TOKENIZER

SAME = np.arange(512, dtype=np.int32)


def guesser(tokens: list[int]) -> Guesser:
    return Guesser(np.array(tokens, np.int32), SAME)


def free(limit: int = 8, ends: tuple[int, ...] = ()) -> Follower:
    return Follower(None, [], None, limit, ends, TOKENIZER.encode)


def guessed(found: Guesser, follower: Follower, floor: float = 0.0) -> list[int]:
    return [guess.token_id for guess in found.guess(follower, floor)]


def test_a_draft_is_what_followed_the_match() -> None:
    assert guessed(guesser([1, 2, 3, 4, 5, 9, 1, 2]), free(3)) == [3, 4, 5]


def test_a_draft_goes_on_into_itself() -> None:
    assert guessed(guesser([1, 2, 3, 1, 2, 3]), free(7)) == [1, 2, 3, 1, 2, 3, 1]


def test_nothing_is_guessed_after_a_token_that_is_new() -> None:
    assert guessed(guesser([1, 2, 3, 4]), free()) == []


def test_a_draft_ends_before_a_token_that_ends_the_output() -> None:
    assert guessed(guesser([1, 2, 3, 4, 5, 1, 2]), free(ends=(4,))) == [3]


def test_less_is_guessed_where_guesses_do_not_come_true() -> None:
    found = guesser([1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3])
    floor = CHANCES[3] * CHANCES[3] * 0.9
    assert len(guessed(found, free(), floor)) == 2
    for _ in range(6):  # 1 2 3 is followed by 9 now
        found.note([9])
        for token in (1, 2, 3):
            found.note([token])
    before = found.chance(3)
    assert before != CHANCES[3]
    for token in (5, 1, 2, 3, 6, 1, 2, 3, 7, 1, 2, 3):
        found.note([token])
    assert found.chance(3) < before
    assert found.chance(8) >= CHANCES[8], "longer matches are counted apart"


def test_it_learns_without_drafting() -> None:
    found = guesser([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1])
    expected = [found.chance(length) for length in (1, 2, 3, 5)]
    for token in range(2, 12):
        found.note([token])
    assert all(
        found.chance(length) > chance for length, chance in zip((1, 2, 3, 5), expected, strict=True)
    )


def test_tokens_that_are_forced_are_no_evidence() -> None:
    found, other = guesser([1, 2, 3, 4, 9, 1]), guesser([1, 2, 3, 4, 9, 1])
    found.note([2, 3, 4])
    other.note([2])
    assert [found.chance(n) for n in (1, 2, 3)] == [other.chance(n) for n in (1, 2, 3)]


def follower(pattern: str, text: str, limit: int = 20) -> Follower:
    matcher = compiled("regex", pattern).matcher()
    last_id = None
    for last_id in TOKENIZER.encode(text):
        assert matcher.accept(last_id)
    return Follower(matcher, [], last_id, limit, TOKENIZER.eos_token_ids, TOKENIZER.encode)


def test_what_the_grammar_forces_is_in_the_draft_and_what_it_forbids_is_not() -> None:
    given = TOKENIZER.encode("xayes, 12xa")
    found = guesser(given).guess(follower("xa(?:no|yes){1,2}, [ab]", "xa"), 0.0)
    text = TOKENIZER.decode([guess.token_id for guess in found])
    assert text == "yes, ", "12 may not follow"


def test_only_a_draw_that_is_saved_is_a_gain() -> None:
    given = TOKENIZER.encode("abtrue, name12abtrue, name12ab")
    found = guesser(given).guess(follower("ab(?:true|yes), name[0-9]+ab", "ab"), 0.0)
    assert found
    forced = [guess for guess in found if guess.gain == 0.0]
    assert forced
    assert all(guess.gain in (0.0, guess.reach) for guess in found)
    assert [g.reach for g in found] == sorted((g.reach for g in found), reverse=True)


def test_a_follower_leaves_the_output_s_own_matcher_alone() -> None:
    matcher = compiled("regex", "[ab]{3}").matcher()
    ahead = Follower(matcher.fork(), [], None, 5, (), TOKENIZER.encode)
    assert ahead.take(ord("a"))
    assert not ahead.take(ord("c"))
    assert ahead.take(ord("b"))
    assert not ahead.take(ord("b")), "a token that ends the output is worth no row"
    assert matcher.accept(ord("b"))
    assert matcher.accept(ord("a"))


def test_a_grammar_over_its_budget_is_told() -> None:
    class Vast(Follower):
        def take(self, token_id: int) -> bool:
            if self.limit == 3:
                raise RequestError("grammar_budget", "grammar too large")
            return super().take(token_id)

    vast = Vast(None, [], None, 5, (), TOKENIZER.encode)
    with pytest.raises(RequestError, match="too large"):
        guessed(guesser([1, 2, 3, 4, 5, 6, 1, 2]), vast)


def offers(*reaches: float) -> list[_Offer]:
    return [_Offer(0, Guess(7, reach, reach)) for reach in reaches]


def test_a_guess_is_taken_as_long_as_it_pays_for_its_row() -> None:
    assert _num_paying(offers(0.01), 1, 1) == 0
    assert _num_paying(offers(0.9, 0.8, 0.7), 1, 1) == 3
    assert _num_paying(offers(0.9, 0.8, 0.7, 0.1), 1, 1) == 3
    assert _num_paying(offers(0.4, 0.3), 8, 8) == 0, "among many, a row costs what a pass saves"


def test_what_passes_cost_grows_evenly_between_the_measured_ones() -> None:
    assert [pass_cost(num) for num in PASS_COSTS] == [*PASS_COSTS.values()]
    costs = [pass_cost(num) for num in range(1, 600)]
    assert costs == sorted(costs)
