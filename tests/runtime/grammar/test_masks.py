"""Masks are what stepping each token byte by byte gives, however they were found."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.errors import RequestError
from plait.runtime.grammar import frontier as frontier_module
from plait.runtime.grammar import masks as masks_module
from plait.runtime.grammar import matcher as matcher_module
from plait.runtime.grammar import vocabulary as vocabulary_module
from plait.runtime.grammar import walk as walk_module
from plait.runtime.grammar.budget import Budget
from plait.runtime.grammar.language import Language
from plait.runtime.grammar.lru import Lru
from plait.runtime.grammar.node import Node
from plait.runtime.grammar.pool import IDLE, Pool
from plait.runtime.grammar.state import State
from plait.runtime.grammar.twins import Twins
from plait.runtime.grammar.vocabulary import Vocabulary

from .rules import arrays, brackets, string, terminal
from .test_pushdown import TREES, node_of
from .tokens import (
    EOS,
    SECOND_EOS,
    TOKENS,
    VOCABULARY,
    WIDTH,
    allowed,
    follow,
    is_text,
    mask,
    matcher_at,
    stepped,
)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a step take as long as it needs beside other tests and their garbage."""
    monkeypatch.setattr(matcher_module, "STEP_TIMEOUT_S", 60.0)


def nodes(pool: Pool) -> dict[str, Node]:
    """Give nodes by what they try out."""
    made = pool.nodes
    return {
        "brackets": brackets(pool),
        "arrays": arrays(pool),
        "counted strings": made.times(string(".{0,30}", pool), 1, None),
        "narrow strings": string(r"[ab\n]{2,9}", pool),
        "lookaround strings": string(r"(?!.*ab)(?s:.{3,25})", pool),
        "one of strings": made.choice(string("a.*", pool), string(".*é", pool)),
        "open end": made.sequence(terminal("[ab]{0,40}", pool), terminal("[^0]{1,9}0?", pool)),
        "many times": made.times(terminal("a|é|ab-", pool), 20, 50),
        "nested times": made.times(made.times(terminal("[ab]-?", pool), 2, 30), 0, 12),
        "string then rest": made.sequence(string(".*", pool), terminal(":[a-z0-9]{0,30}", pool)),
        "unless": made.terminal(
            pool.locals.start(_words(pool), "plain", True), (pool.locals.literal(b"ab"),)
        ),
    }


def _words(pool: Pool) -> Language:
    a_to_z = pool.languages.sets.get(((97, 122),))
    return pool.languages.repeat(pool.languages.chars(a_to_z), 1, None)


NAMES = list(nodes(Pool(VOCABULARY)))


@pytest.mark.parametrize("name", NAMES)
def test_a_mask_equals_stepping_each_token(name: str) -> None:
    pool = Pool(VOCABULARY)
    start = matcher_at(nodes(pool)[name], pool)
    for seed in range(6):
        follow(start, random.Random(seed), 10)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(TREES, st.randoms(use_true_random=False))
def test_a_mask_of_random_nodes_equals_stepping(tree: object, rng: random.Random) -> None:
    pool = Pool(VOCABULARY)
    follow(matcher_at(node_of(tree, pool), pool), rng, 5)


@pytest.mark.parametrize("slice_lens", [(), (1,), (2, 3, 5), (40,)])
def test_slices_change_no_mask(
    slice_lens: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary_module, "SLICE_LENS", slice_lens)
    vocabulary = Vocabulary(TOKENS, (EOS, SECOND_EOS), WIDTH)
    ours, theirs = Pool(VOCABULARY), Pool(vocabulary)
    for name in NAMES:
        one = matcher_at(nodes(ours)[name], ours)
        other = matcher_at(nodes(theirs)[name], theirs)
        rng = random.Random(name)
        for _ in range(8):
            choices = [i for i in allowed(one) if is_text(i)]
            assert np.array_equal(mask(one), mask(other))
            if not choices:
                break
            token_id = rng.choice(choices)
            assert one.accept(token_id)
            assert other.accept(token_id)


@pytest.mark.parametrize("name", NAMES)
def test_twins_change_no_mask(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters beyond the longest token are cut: each mask must be as if they were not."""
    cut, whole = Pool(VOCABULARY), Pool(VOCABULARY)
    one = matcher_at(nodes(cut)[name], cut)
    expected: list[list[int]] = []
    rng = random.Random(1)
    taken: list[int] = []
    for _ in range(25):
        expected.append(allowed(one))
        texts = [i for i in expected[-1] if is_text(i)]
        if not texts:
            break
        taken.append(rng.choice(texts))
        assert one.accept(taken[-1])
    monkeypatch.setattr(Twins, "get", lambda self, language, horizon: language)
    monkeypatch.setattr(whole.pushdown, "twin", lambda state: state)
    other = matcher_at(nodes(whole)[name], whole)
    for number, choices in enumerate(expected):
        assert allowed(other) == choices
        assert number == len(taken) or other.accept(taken[number])


@pytest.mark.parametrize(
    ("module", "limit", "value"),
    [
        (walk_module, "MAX_ROWS", 3),
        (masks_module, "MASK_BYTES", 1),
        (masks_module, "MAX_WALKED", 1),
        (masks_module, "NARROW", 0),
        (masks_module, "NARROW", 1 << 40),
        (masks_module, "WIDE", 0),
        (masks_module, "WIDE", 256),
        (frontier_module, "MAX_NODES", 10),
    ],
)
def test_what_is_forgotten_or_found_another_way_is_the_same(
    module: object, limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, limit, value)
    pool = Pool(VOCABULARY)
    for name, node in nodes(pool).items():
        follow(matcher_at(node, pool), random.Random(name), 5)


def test_a_walk_that_takes_too_long_leaves_nothing_half_made() -> None:
    pool = Pool(VOCABULARY)
    matcher = matcher_at(nodes(pool)["lookaround strings"], pool)
    assert matcher.accept(ord('"'))
    for num_states in range(0, 3000, 40):
        state = start_of(pool, "lookaround strings", b'"')
        budget = Budget(60.0, num_states)
        try:
            with pool.using(budget):
                pool.mask(state, budget)
        except RequestError:
            continue
        assert allowed(matcher) == stepped(matcher)
        return
    pytest.fail("the budget was never enough")


def start_of(pool: Pool, name: str, data: bytes) -> State:
    with pool.using(IDLE):
        start = pool.pushdown.closure(pool.pushdown.push(nodes(pool)[name], None))
        state = pool.pushdown.advance(start, data)
    assert state is not None
    return state


def test_a_state_whose_mask_was_dropped_gets_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(VOCABULARY)
    monkeypatch.setattr(masks_module, "MASK_BYTES", 3 * 4 * VOCABULARY.mask_len)
    start = matcher_at(nodes(pool)["many times"], pool)
    before = mask(start)
    matcher = start.fork()
    for _ in range(8):
        assert matcher.accept(ord("a"))
        assert allowed(matcher) == stepped(matcher)
    assert np.array_equal(mask(start), before)


def test_the_oldest_values_are_dropped_first() -> None:
    kept = Lru[str, int](2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)
    assert (kept.get("a"), kept.get("b"), kept.get("c"), len(kept)) == (1, None, 3, 2)
