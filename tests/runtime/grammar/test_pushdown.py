"""Nodes above the terminals: sequences, choices, counts and recursion, against plain Python."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.errors import RequestError
from plait.runtime.grammar import pushdown as pushdown_module
from plait.runtime.grammar.budget import Budget
from plait.runtime.grammar.build import build_language
from plait.runtime.grammar.node import Node, Rule
from plait.runtime.grammar.pool import IDLE, Pool
from plait.runtime.grammar.regex import parse
from plait.runtime.grammar.state import State

from .rules import arrays, brackets, terminal
from .tokens import BYTES, VOCABULARY

POOL = Pool(BYTES)


def start(node: Node, pool: Pool = POOL) -> State:
    with pool.using(IDLE):
        return pool.pushdown.closure(pool.pushdown.push(node, None))


def accepts(state: State, text: str, pool: Pool = POOL) -> bool:
    with pool.using(IDLE):
        after = pool.pushdown.advance(state, text.encode())
    return after is not None and after.is_accepting


def is_balanced(text: str) -> bool:
    while "()" in text or "[]" in text:
        text = text.replace("()", "").replace("[]", "")
    return not text


def test_brackets_nest_to_any_depth() -> None:
    state = start(brackets(POOL))
    for length in range(7):
        for text in map("".join, itertools.product("()[]", repeat=length)):
            assert accepts(state, text) == is_balanced(text)
    assert accepts(state, "([" * 3000 + "])" * 3000)
    assert not accepts(state, "([" * 3000 + "])" * 2999 + ")]")


def test_nested_arrays_are_those_of_json() -> None:
    state = start(arrays(POOL))
    for text in ["[]", "[a]", '[a,"é",[[]]]', '["\\u00e9\\n"]']:
        assert accepts(state, text)
    for text in ["", "[", "[,]", "[a,]", "[a a]", '["é\n"]', "[]]", '["aaaaa"]', '["a]']:
        assert not accepts(state, text)


PIECES = ["a", "b", "ab", "a?", "[ab]*", "(?:ab)+", "b{0,2}"]
TREES: st.SearchStrategy[object] = st.recursive(
    st.sampled_from(PIECES),
    lambda inner: st.one_of(
        st.tuples(st.just("seq"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("or"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("times"), inner, st.integers(0, 2), st.sampled_from([None, 0, 1, 4])),
    ),
    max_leaves=6,
)


def node_of(tree: object, pool: Pool) -> Node:
    match tree:
        case str():
            return terminal(tree, pool)
        case "seq", list(parts):
            return pool.nodes.sequence(*(node_of(part, pool) for part in parts))
        case "or", list(options):
            return pool.nodes.choice(*(node_of(option, pool) for option in options))
        case "times", item, int(low), (int() | None) as more:
            high = None if more is None else low + more
            return pool.nodes.times(node_of(item, pool), low, high)
        case _:
            raise AssertionError(tree)


def regex_of(tree: object) -> str:
    match tree:
        case str():
            return f"(?:{tree})"
        case "seq", list(parts):
            return "".join(map(regex_of, parts))
        case "or", list(options):
            return f"(?:{'|'.join(map(regex_of, options))})"
        case "times", item, int(low), (int() | None) as more:
            return f"(?:{regex_of(item)}){{{low},{'' if more is None else low + more}}}"
        case _:
            raise AssertionError(tree)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(TREES, st.lists(st.text("abc", max_size=6), min_size=1, max_size=8))
def test_nodes_mean_what_the_regex_of_the_same_shape_means(tree: object, texts: list[str]) -> None:
    state = start(node_of(tree, POOL))
    for text in texts:
        assert accepts(state, text) == (re.fullmatch(regex_of(tree), text) is not None)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(TREES, st.randoms(use_true_random=False))
def test_groups_are_the_steps_of_each_byte(tree: object, rng: random.Random) -> None:
    pool = Pool(VOCABULARY)
    state: State | None = start(node_of(tree, pool), pool)
    for _ in range(4):
        assert state is not None
        stepped = {b: pool.pushdown._step(state, b) for b in range(256)}
        grouped = {b: after for data, after in pool.pushdown.groups(state) for b in data}
        assert grouped == {b: after for b, after in stepped.items() if after is not None}
        assert all(pool.pushdown.step(state, b) is after for b, after in stepped.items())
        assert state.first == set(grouped)
        if not grouped:
            return
        state = grouped[rng.choice(sorted(grouped))]


def test_equal_states_are_one_object() -> None:
    state = start(arrays(POOL))
    with POOL.using(IDLE):
        first = POOL.pushdown.advance(state, b"[a,[")
        assert first is not None
        assert first is POOL.pushdown.advance(state, b'["\\u0061a",[')
        assert first is not POOL.pushdown.advance(state, b"[a,[[")


def test_greedy_text_is_not_split_and_unless_forbids_beginnings() -> None:
    with POOL.using(IDLE):
        word = build_language(parse("[a-z]+"), POOL.languages)
        greedy = POOL.nodes.terminal(POOL.locals.start(word, "plain", is_greedy=True))
        number = terminal("[0-9a-c]+", POOL)
    state = start(POOL.nodes.sequence(greedy, number))
    assert accepts(state, "abc12")
    assert not accepts(state, "abca")
    assert accepts(state, "z9a")
    ifs = POOL.locals.literal(b"if")
    named = start(POOL.nodes.terminal(POOL.locals.start(word, "plain"), (ifs,)))
    assert accepts(named, "i")
    assert accepts(named, "ig")
    assert not accepts(named, "if")
    assert not accepts(named, "ifs")


def test_too_many_ways_to_read_a_text_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushdown_module, "MAX_CONFIGS", 20)
    pool = Pool(BYTES)
    a = terminal("a", pool)
    node = pool.nodes.times(pool.nodes.choice(a, pool.nodes.times(a, 1, 9)), 1, 90)
    state: State | None = start(node, pool)
    with pool.using(IDLE), pytest.raises(RequestError, match="more than 20 ways"):
        pool.pushdown.advance(state, b"a" * 60)


def test_what_ran_out_of_budget_is_right_the_next_time() -> None:
    pool = Pool(VOCABULARY)
    node = pool.nodes.sequence(arrays(pool), pool.nodes.times(brackets(pool), 30, 60))
    text = '[a,"éa",[[a]]]' + "([])" * 3
    for num_states in range(1, 2000, 7):
        try:
            with pool.using(Budget(60.0, num_states)):
                state = pool.pushdown.closure(pool.pushdown.push(node, None))
                after = pool.pushdown.advance(state, text.encode())
                assert after is not None
                assert pool.pushdown.twin(after) is not after
        except RequestError:
            continue
        fresh = Pool(VOCABULARY)
        other = fresh.nodes.sequence(arrays(fresh), fresh.nodes.times(brackets(fresh), 30, 60))
        again = start(other, fresh)
        with fresh.using(IDLE):
            expected = fresh.pushdown.advance(again, text.encode())
        assert expected is not None
        assert len(after.configs) == len(expected.configs)
        assert after.first == expected.first
        return
    pytest.fail("the budget was never enough")


def test_a_rule_without_a_body_is_a_mistake_of_ours() -> None:
    with POOL.using(IDLE), pytest.raises(AssertionError, match="lonely"):
        POOL.pushdown.closure(POOL.pushdown.push(Rule("lonely"), None))
