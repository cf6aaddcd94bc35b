"""Texts split by the parts of their grammar: which reading, how deep, how fast."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark, Token, Tree

from plait.runtime.errors import RequestError
from plait.runtime.grammar import split as split_module
from plait.runtime.grammar.explain import compile_plain, match, samples
from plait.runtime.grammar.spec import GrammarSpec
from plait.runtime.grammar.split import Split, Splitter, Splitters, capturable, splitter

from .composed import ALL, CALL, CAPTURES, LIST, NESTED, ebnf, lark, schema
from .test_ebnf import random_part


def split(spec: GrammarSpec, text: str, *names: str) -> Split:
    found = splitter(spec, frozenset(names)).split(text)
    assert found is not None
    return found


def captured(spec: GrammarSpec, text: str, *names: str) -> dict[str, str | None]:
    found = split(spec, text, *names)
    return {name: found.last(name) for name in names}


@pytest.mark.parametrize("name", ALL)
def test_each_part_of_a_sample_is_a_text_of_its_grammar(name: str) -> None:
    spec = ALL[name]
    checks = CAPTURES[name]
    for text in samples(compile_plain(spec), 15, 5, 60):
        found = split(spec, text, *checks)
        assert found.spans
        for part, inner in spec.parts:
            assert all(match(inner, piece) for piece in found.texts(part))
        for part, check in checks.items():
            assert all(map(check, found.texts(part))), (text, part)


TEXTS = {name: samples(compile_plain(spec), 20, 9, 40) for name, spec in ALL.items()}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_a_text_splits_exactly_where_the_grammar_takes_it(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(ALL)))
    text = data.draw(st.sampled_from(TEXTS[name]))
    place = data.draw(st.integers(0, len(text)))
    text = text[:place] + data.draw(st.sampled_from(["", "a", "1", '"', " ", ")"])) + text[place:]
    found = splitter(ALL[name], frozenset(CAPTURES[name])).split(text)
    assert (found is not None) == match(ALL[name], text)


def test_random_grammars_split_what_they_take_into_texts_of_their_rules() -> None:
    rng = random.Random(4)
    texts = ["".join(t) for n in range(5) for t in itertools.product("ab", repeat=n)]
    num_pieces = 0
    for _ in range(40):
        names = ["r", "x", "y"][: rng.randint(1, 3)]
        rules = [f"{n} ::= {random_part(rng, names)} | {random_part(rng, names)}" for n in names]
        try:
            num_pieces += num_right("\n".join(rules), names, rng, texts)
        except RequestError:  # no finite text, or far too ambiguous
            continue
    assert num_pieces > 80


def num_right(source: str, names: list[str], rng: random.Random, texts: list[str]) -> int:
    """Split some texts by the rules of a grammar, and check and count the pieces."""
    whole, num_pieces = splitter(ebnf(source), frozenset(names)), 0
    for text in rng.sample(texts, 12):
        found = whole.split(text)
        assert (found is not None) == match(ebnf(source), text), (source, text)
        pieces = [(n, t) for n in names if found is not None for t in found.texts(n)]
        for name, piece in set(pieces):
            assert match(ebnf(f"root ::= {name}\n{source}"), piece), (source, text)
        num_pieces += len(pieces)
    return num_pieces


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(ALL)), st.integers(0, 19))
def test_a_text_can_go_on_where_a_token_may_follow(name: str, number: int) -> None:
    matcher = compile_plain(ALL[name]).matcher()
    text = TEXTS[name][number]
    assert all(map(matcher.accept, text.encode()))
    assert split(ALL[name], text).can_go_on != matcher.is_finished


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        # as long as they can be, from left to right
        ("root ::= a b\na ::= [a-z]+\nb ::= [a-z]+", "wxyz", {"a": "wxy", "b": "z"}),
        ("root ::= [a-z]* a\na ::= [a-z]+", "wxyz", {"a": "wxyz"}),
        ("root ::= a | b c\na ::= [a-z]+\nb ::= [a-z]\nc ::= .*", "wxyz", {"a": "wxyz", "b": None}),
        # of what is equally long, the alternative that comes first
        ("root ::= a | b\na ::= [a-z]+\nb ::= [a-z]+", "x", {"a": "x", "b": None}),
        ("root ::= b | a\na ::= [a-z]+\nb ::= [a-z]+", "x", {"a": None, "b": "x"}),
        # the last one, and no text at all
        ('root ::= (a ",")* a\na ::= [a-z]', "x,y,z", {"a": "z"}),
        ("root ::= sign [0-9]+\nsign ::= [-+]?", "12", {"sign": ""}),
        ("root ::= sign? [0-9]+\nsign ::= [-+]", "12", {"sign": None}),
        # of nested ones the outer
        ('root ::= a\na ::= "(" a ")" | [a-z]', "((x))", {"a": "((x))"}),
        # left recursion, what may be empty before it included
        ('root ::= a\na ::= a "+" b | b\nb ::= [0-9]', "1+2+3", {"a": "1+2+3", "b": "3"}),
        ('root ::= a ";"\na ::= b "+" | [0-9]\nb ::= a "*" | a', "1*+;", {"a": "1*+", "b": "1*"}),
        ('root ::= a\na ::= e a "+" | [0-9]\ne ::= "e"?', "1++", {"a": "1++", "e": ""}),
        ('root ::= a "."\na ::= a b |\nb ::= [0-9]', ".", {"a": "", "b": None}),
        ("root ::= a\na ::= [é-ü]+", "éü", {"a": "éü"}),
    ],
)
def test_the_reading_that_is_taken(source: str, text: str, expected: dict[str, str | None]) -> None:
    assert captured(ebnf(source), text, *expected) == expected


def test_parts_in_parts_are_found_by_their_path() -> None:
    text = '<f({"q":"a"},{"q":"b"})>find' + 'get({"q":"c"}) at 5'
    found = split(NESTED, text, "CALL")
    assert list(found.texts("body", "ARGS")) == ['{"q":"a"}', '{"q":"b"}']
    assert list(found.texts("CALL", "args")) == ['{"q":"c"}']
    assert list(found.texts("CALL", "when")) == [" at 5"]
    assert found.last("CALL") == 'get({"q":"c"}) at 5'


PLAIN = r"""
    start: _list{pair, ","}
    ?pair: KEY "=" value | "(" start ")"
    value: (NAME | NUMBER)+ -> some
    _list{x, sep}: x (sep x)*
    KEY: "let" | "var"
    NAME: /[a-z]+/
    NUMBER: /[0-9]+/
    %ignore /[ \n]+/
"""


def test_rules_and_terminals_of_lark_are_where_lark_has_them() -> None:
    spec = lark(PLAIN)
    parser = Lark(PLAIN, parser="lalr", propagate_positions=True, keep_all_tokens=True)
    for text in samples(compile_plain(spec), 30, 4, 60):
        tree = parser.parse(text)
        tokens = [t for t in tree.scan_values(lambda each: isinstance(each, Token))]
        found = split(spec, text, "start", "value", "NAME", "NUMBER", "KEY")
        for name in ("NAME", "NUMBER", "KEY"):
            assert list(found.texts(name)) == [t for t in tokens if t.type == name]
        values = [_text(text, node) for node in tree.iter_subtrees() if node.data == "some"]
        assert sorted(found.texts("value")) == sorted(values)
        assert found.last("start") == _text(text, tree)


def _text(text: str, tree: Tree[Token]) -> str:
    return text[tree.meta.start_pos : tree.meta.end_pos]


def test_a_rule_of_lark_with_parts_reaches_over_them() -> None:
    text = 'ab ( {"q":"é"} , {"q":""} ) '
    assert captured(LIST, text, "start", "NAME", "ARGS") == {
        "start": text[:-1],
        "NAME": "ab",
        "ARGS": '{"q":""}',
    }


def test_the_names_that_can_be_captured() -> None:
    assert list(capturable(CALL)) == ["root", "tool", "args", "when"]
    assert {"start", "NAME", "ARGS", "LPAR"} <= set(capturable(LIST))
    assert not any(name.startswith("__") for name in capturable(lark(PLAIN)))


@pytest.mark.parametrize("text", ["", 'find({"q":""', 'find({"q":""}) at ', "\ud800"])
def test_a_text_that_is_none_or_not_whole_is_not_split(text: str) -> None:
    assert splitter(CALL, frozenset({"tool"})).split(text) is None


@pytest.mark.parametrize(
    ("source", "make"),
    [
        ('root ::= e\ne ::= "(" e ")" | "x"', lambda n: "(" * n + "x" + ")" * n),
        ('root ::= e\ne ::= i "," e | i\ni ::= "[" i "]" | "x"', lambda n: "[x]," * n + "x"),
        ('root ::= e "."\ne ::= e "+" [0-9] | [0-9]', lambda n: "1" + "+1" * n + "."),
    ],
)
def test_deep_and_long_texts_take_time_in_proportion(
    source: str, make: Callable[[int], str]
) -> None:
    spec = ebnf(source)
    assert split(spec, make(50), "e").last("e") is not None
    start = time.thread_time()
    assert split(spec, make(3_000), "e").last("e") is not None
    assert time.thread_time() - start < 10


NESTED_LISTS = ebnf('root ::= e\ne ::= "(" e "," e ")" | [a-z]')
NESTED_TEXTS = [f"({'(' * n}x{',y)' * n},z)" for n in range(1, 40)]


def test_a_splitter_that_begins_again_splits_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [Splitter(NESTED_LISTS, frozenset("e")).split(text) for text in NESTED_TEXTS]
    monkeypatch.setattr(split_module, "MAX_LEARNED", 200)
    small = Splitter(NESTED_LISTS, frozenset("e"))
    most, pools = small.size + 200, {small._pool}
    for text, found in zip(NESTED_TEXTS, expected, strict=True):
        assert small.split(text) == found
        assert small.size <= most
        pools.add(small._pool)
    assert 1 < len(pools) < len(NESTED_TEXTS)


def test_a_splitter_that_cannot_begin_again_stays_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise RequestError("grammar_budget", "grammar too large")

    expected = splitter(NESTED_LISTS, frozenset("e")).split(NESTED_TEXTS[3])
    monkeypatch.setattr(split_module, "MAX_LEARNED", 0)
    small = Splitter(NESTED_LISTS, frozenset("e"))
    pool = small._pool
    with monkeypatch.context() as patch:
        patch.setattr(split_module, "build", refuse)
        assert [small.split(NESTED_TEXTS[3]) for _ in range(2)] == [expected, expected]
        assert small._pool is pool
    assert small.split(NESTED_TEXTS[3]) == expected
    assert small._pool is not pool


def test_splitters_are_kept_while_they_are_small_together() -> None:
    first, others = Splitter(CALL, frozenset()), [ebnf(f'root ::= "{n}"') for n in range(9)]
    splitters = Splitters(2 * first.size - 1)
    first = splitters.get(CALL, frozenset())
    for spec in others:
        assert splitters.get(spec, frozenset()) is splitters.get(spec, frozenset())
        assert splitters.get(CALL, frozenset()) is first
    second = splitters.get(CALL, frozenset({"tool"}))
    assert second is not first
    assert splitters.get(CALL, frozenset({"tool"})) is second
    assert splitters.get(CALL, frozenset()) is not first  # it was too large beside the second


def test_a_splitter_counts_what_it_learned() -> None:
    splitters = Splitters(Splitter(NESTED_LISTS, frozenset()).size + 500)
    first = splitters.get(NESTED_LISTS, frozenset())
    splitters.get(CALL, frozenset())
    assert splitters.get(NESTED_LISTS, frozenset()) is first
    first.split(NESTED_TEXTS[-1])
    splitters.get(CALL, frozenset())
    assert splitters.get(NESTED_LISTS, frozenset()) is not first


def test_a_large_value_in_a_part_is_found() -> None:
    value = json.dumps([{"a": "é"}] * 500, separators=(",", ":"), ensure_ascii=False)
    spec = ebnf('root ::= "<" v ">"', v=schema({}))
    assert list(split(spec, f"<{value}>").texts("v")) == [value]
