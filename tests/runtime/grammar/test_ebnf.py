"""EBNF grammars against a slow recogniser; left recursion, faults with their place."""

from __future__ import annotations

import itertools
import random
import time

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.ebnf_reader import Alt, Body, Many, OneOf, Ref, Row, Text, read
from plait.runtime.grammar.spec import CompiledGrammar, GrammarSpec
from plait.runtime.grammar.vocabulary import Vocabulary

BYTES = Vocabulary([bytes((b,)) for b in range(256)], (256,), 257)
COMPILER = GrammarCompiler(BYTES, 30.0, 1_000_000)
JSON = r"""
root   ::= value  # any JSON
value  ::= (object | array | string | number
          | "true" | "false" | "null") ws
object ::= "{" ws (pair ("," ws pair)*)? "}"
pair   ::= string ws ":" ws value
array  ::= "[" ws (value ("," ws value)*)? "]"
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws     ::= [ \t\n] ws | ""
"""


def compiled(source: str) -> CompiledGrammar:
    return COMPILER.compile(GrammarSpec("ebnf", (source,)))


def accepts(grammar: CompiledGrammar, text: str) -> bool:
    matcher = grammar.matcher()
    return all(map(matcher.accept, text.encode())) and matcher.is_accepting


class Recogniser:
    """The slow definition: for each rule and place, all places where a text of it can end."""

    def __init__(self, rules: dict[str, Body], text: str) -> None:
        self.text = text
        self.ends = {(name, i): set[int]() for name in rules for i in range(len(text) + 1)}
        changed = True
        while changed:
            sizes = sum(map(len, self.ends.values()))
            for (name, place), found in self.ends.items():
                found |= self.of(rules[name], place)
            changed = sum(map(len, self.ends.values())) > sizes

    def of(self, part: Body, place: int) -> set[int]:
        match part:
            case Text(text):
                return {place + len(text)} if self.text.startswith(text, place) else set()
            case OneOf(ranges):
                codes = map(ord, self.text[place : place + 1])
                return {place + 1 for c in codes if any(a <= c <= b for a, b in ranges)}
            case Ref(name):
                return self.ends[name, place]
            case Alt(options):
                return set[int]().union(*(self.of(option, place) for option in options))
            case Row(parts):
                found = {place}
                for item in parts:
                    found = set[int]().union(*(self.of(item, i) for i in found))
                return found
            case Many(item, low, high):
                return self._rounds(item, low, high, place)

    def _rounds(self, item: Body, low: int, high: int | None, place: int) -> set[int]:
        here, found = {place}, set[int]()
        most = low + len(self.text) + 1 if high is None else high
        for num in range(most + 1):
            found |= here if num >= low else set()
            here = set[int]().union(*(self.of(item, i) for i in here))
        return found


def random_part(rng: random.Random, names: list[str], depth: int = 0) -> str:
    kind = rng.random()
    if depth > 2 or kind < 0.3:
        return rng.choice(['"a"', '"b"', "[ab]", '""', '"ab"'])
    if kind < 0.55:
        return rng.choice(names)
    first, second = random_part(rng, names, depth + 1), random_part(rng, names, depth + 1)
    if kind < 0.75:
        return f"{first} {second}"
    return f"({first} | {second})" if kind < 0.88 else f"({first}){rng.choice('*+?')}"


def test_random_grammars_accept_what_the_recogniser_accepts() -> None:
    rng = random.Random(2)
    texts = ["".join(t) for n in range(5) for t in itertools.product("ab", repeat=n)]
    num_left = num_accepted = 0
    for _ in range(150):
        names = ["root", "x", "y"][: rng.randint(1, 3)]
        source = "\n".join(
            f"{n} ::= {random_part(rng, names)} | {random_part(rng, names)}" for n in names
        )
        try:
            grammar = compiled(source)
            verdicts = {text: accepts(grammar, text) for text in rng.sample(texts, 20)}
        except RequestError:  # no finite text, or far too ambiguous
            continue
        rules = read(source)
        num_left += "::= root" in source or "::= x" in source
        for text, verdict in verdicts.items():
            expected = len(text) in Recogniser(rules, text).ends["root", 0]
            num_accepted += expected
            assert verdict == expected, (source, text)
    assert num_left > 20
    assert num_accepted > 200


@pytest.mark.parametrize(
    ("source", "good", "bad"),
    [
        (  # xgrammar#126
            'root ::= sum\nsum ::= sum "+" item | item\nitem ::= [0-9]+ | "(" sum ")"',
            ["7", "1+20+3", "(1+2)+3", "((4))"],
            ["", "1+", "+1", "(1", "1 + 2", "()"],
        ),
        ('a ::= b "x" | "y"\nb ::= c? a\nc ::= "c"', ["y", "yx", "cyx", "ccyxx"], ["cy", "x"]),
        ('root ::= (root "-")* "a"', ["a", "a-a", "a-a-a"], ["a-", "-a"]),
        ('root ::= root root | "a" | ""', ["", "a", "aaa"], ["b"]),
        ('root ::= "<" root ">" | [^<>\\n]{2,3}', ["<ab>", "<<abc>>"], ["<a>", "<ab", "abcd"]),
        ('root ::= l | r\nl ::= l "a" | "b"\nr ::= "c" r | "d"', ["baa", "ccd"], ["ab", "dc"]),
        (
            r'root ::= "\x41\u00e9\U0001F600\t\"\\" [\]\-a] .',
            ['Aé😀\t"\\]x', 'Aé😀\t"\\-\n'],
            ["A"],
        ),
        ('root::="a"{2}b{1,}c{0,2}  b ::= "b"\nc\n::= "c" # end', ["aab", "aabbcc"], ["ab", "aa"]),
        ('root ::= "a" |', ["a", ""], ["aa"]),
        (
            JSON,
            ['{"a": [1, -2.5e+3, {}], "\\u00e9\\n": true }', "[[[]], 0 ]\n", '"é"'],
            ["[1,]", "01", '"\n"', "{'a': 1}", '{"a" 1}', "[1"],
        ),
    ],
)
def test_texts_are_accepted_and_others_not(source: str, good: list[str], bad: list[str]) -> None:
    grammar = compiled(source)
    assert [text for text in good if not accepts(grammar, text)] == []
    assert [text for text in bad if accepts(grammar, text)] == []


def test_large_counters_stay_counters() -> None:
    grammar = compiled('root ::= ("<" root ">" | "x"){2000,100000}')
    assert accepts(grammar, "x" * 2000)
    assert not accepts(grammar, "x" * 1999)
    assert not accepts(grammar, "<x>" * 2000)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "no rule"),
        ("# nothing", "no rule"),
        ('root ::= "a', 'line 1, column 10: the text has no closing "'),
        ('root ::= "a"\nroot ::= "b"', "line 2, column 1: rule root is defined twice"),
        (
            'root ::= "a"\n  | part',
            "line 2, column 5: rule part is not defined\n    | part\n      \\^",
        ),
        ("root ::= [b-a]", "line 1, column 11: the range runs backwards"),
        ("root ::= [a", "no closing ]"),
        ("root ::= []", "at least one character"),
        (r'root ::= "\q"', r"unknown escape \\q"),
        (r'root ::= "\uD800"', "surrogate"),
        (r'root ::= "\x4"', "unknown escape"),
        ('root ::= ("a"', r"expected \)"),
        ('root ::= "a")', "expected a rule, a part of one or the end"),
        ("root ::= 'a'", "expected a rule, a part of one or the end; write double quotes"),
        ('root = "a"', "expected ::="),
        ("root ::= #x41", "the rule root is empty.*# begins a comment"),
        ('a ::= b b\nb ::= ""', "the rule a is empty"),
        ('root ::= "a"{3,2}', "the first number is the larger one"),
        ('root ::= "a"{x}', "expected {m}"),
        ('root ::= "a" | loop\nloop ::= "b" loop', "rule loop: no finite text"),
        ("root ::= root", "rule root: no finite text"),
    ],
)
def test_a_fault_is_named_with_its_place(source: str, reason: str) -> None:
    with pytest.raises(RequestError, match=reason) as caught:
        compiled(source)
    assert caught.value.code == "bad_grammar"


def nested(depth: int) -> str:
    return "root ::= " + '("a" (' * depth + '"b"' + "))*" * depth


@pytest.mark.parametrize("depth", [10, 60, 100])
def test_deep_nesting_is_read(depth: int) -> None:
    assert accepts(compiled(nested(depth)), "a" * depth + "b")


@pytest.mark.parametrize("depth", [500, 10_000])
def test_far_too_deep_nesting_is_refused(depth: int) -> None:
    with pytest.raises(RequestError, match="nested too deeply") as caught:
        compiled(nested(depth))
    assert caught.value.code == "grammar_budget"


def test_long_chains_of_rules_are_read() -> None:
    rules = [f'r{i} ::= "a" r{i + 1} "b"' for i in range(3000)]
    grammar = compiled("\n".join([*rules, 'r3000 ::= "c"']))
    assert accepts(grammar, "a" * 3000 + "c" + "b" * 3000)


def test_a_grammar_compiles_at_once() -> None:
    compiled(JSON)
    start_s = time.thread_time()
    compiled(JSON + "# again")
    assert time.thread_time() - start_s < 0.1
