"""The patterns of JSON Schema match what ECMA-262 says, somewhere in the text."""

from __future__ import annotations

import random
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.errors import RequestError
from plait.runtime.grammar.build import build_language
from plait.runtime.grammar.expr import ANYTHING, Concat, literal
from plait.runtime.grammar.schema.ecma import MAX_DEPTH, parse_ecma
from plait.runtime.grammar.schema.properties import property_of

from .words import Words, suite

WORDS = Words()


def matches(pattern: str, texts: list[str]) -> list[bool]:
    language = build_language(parse_ecma(pattern), WORDS.languages)
    return [WORDS.holds(language, text) for text in texts]


def held(pattern: str, texts: list[str]) -> list[str]:
    return [text for text, is_held in zip(texts, matches(pattern, texts), strict=True) if is_held]


ATOMS = ["a", "b", "é", ".", "[ab]", "[^a]", r"\d", r"\w", r"\W", "[a-c1]", "A", "1", " ", r"\S"]
SUFFIXES = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?"]
PLACES = ["", "^", "$", r"\b", r"\B", "(?=a)", "(?!b)", "(?<=a)", "(?<!b1)"]


def patterns() -> st.SearchStrategy[str]:
    atoms = st.builds(str.__add__, st.sampled_from(ATOMS), st.sampled_from(SUFFIXES))
    leaves = atoms | st.sampled_from(PLACES)

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        groups = st.builds("({}){}".format, inner, st.sampled_from(SUFFIXES))
        looks = st.builds("(?{}{})".format, st.sampled_from("=!"), inner)
        joined = st.lists(inner, min_size=2, max_size=3)
        return groups | looks | joined.map("".join) | joined.map("|".join)

    return st.recursive(leaves, larger, max_leaves=7)


TEXTS = st.text(st.sampled_from("ab1 Aé-"), max_size=6)


@settings(deadline=None, max_examples=400)
@given(patterns(), st.lists(TEXTS, min_size=1, max_size=6))
def test_patterns_find_what_python_finds(pattern: str, texts: list[str]) -> None:
    # Python's `$` also stands before a last newline, and its \B not in the empty text.
    searched = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    texts = [text for text in texts if text or r"\B" not in pattern]
    expected = [searched.search(text) is not None for text in texts]
    assert matches(pattern, texts) == expected


@pytest.mark.parametrize("pattern", ["^abc$", "^(a|b)$", "^a+$|^b+$", r"^\d{3}-\w+$"])
def test_anchors_at_the_ends_leave_a_plain_language(pattern: str) -> None:
    language = build_language(parse_ecma(pattern), WORDS.languages)
    assert language.is_plain


def test_what_any_text_can_stand_for_is_left_out() -> None:
    for pattern in ("a", "a+", ".*a.*", "b*a{1,}"):
        assert parse_ecma(pattern) in (
            Concat((ANYTHING, *literal("a").parts, ANYTHING)),  # type: ignore[union-attr]
            parse_ecma("a{1}"),
        )
    assert build_language(parse_ecma(".*"), WORDS.languages) is WORDS.languages.anything
    assert build_language(parse_ecma(""), WORDS.languages) is WORDS.languages.anything


CASES = [
    ("^abc$", ["abc", "abc\n", "xabc"], ["abc"]),
    ("a.c", ["abc", "a\nc", "a\rc", "a\u2028c", "a\u2029c", "a🙏c"], ["abc", "a🙏c"]),
    (r"^\s$", [" ", "\ufeff", "\u2003", "\x1c", "\x85", "a"], [" ", "\ufeff", "\u2003"]),
    (r"^[\s\S]$", ["\n", "a", "ab"], ["\n", "a"]),
    (r"^go on\!$", ["go on!", "go on", r"go on\!"], ["go on!"]),
    (r"^(\{[\w\-]+\}|[\w\-]+)$", ["{id}", "x-1", "{id", "}"], ["{id}", "x-1"]),
    (r"^a+$|^b+$", ["aaa", "b", "ab", "", "c"], ["aaa", "b"]),
    (r"^\d{3}-\w+$", ["123-ab_9", "12a-x", "123-", "١٢٣-a"], ["123-ab_9"]),
    ("^(?<year>\\d)(?P<month>\\d)$", ["12", "1"], ["12"]),
    ("^\\x41\\u0042\\u{43}\\cJ\\0\\/\\.$", ["ABC\n\0/.", "ABC\n\0/x"], ["ABC\n\0/."]),
    ("^\\ud83d\\ude00[\\ud83d\\ude00-\\ud83d\\ude05]$", ["😀😂", "😀x"], ["😀😂"]),
    ("^[^]$", ["\n", "a", ""], ["\n", "a"]),
    ("a[]|b", ["a", "b"], ["b"]),
    (r"^[\b]$", ["\b", "b"], ["\b"]),
    (r"^[a-]$", ["a", "-", "b"], ["a", "-"]),
    (r"^[\w-.]$", ["a", "-", ".", "+"], ["a", "-", "."]),
    (r"^[+-\d]$", ["+", "-", "7", "."], ["+", "-", "7"]),
    (r"^[[a]$", ["[", "a", "b"], ["[", "a"]),
    ("^{a}$", ["{a}", "a"], ["{a}"]),
    ("^x{$", ["x{", "x"], ["x{"]),
    ("^a{,}$", ["a{,}", "a"], ["a{,}"]),
    ("]", ["]", ""], ["]"]),
    (r"\Aab\Z", ["ab", "ab\n", "xab"], ["ab"]),
    ("(?i)^ab[c-d]é$", ["ABCÉ", "abDé", "abe"], ["ABCÉ", "abDé"]),
    ("^a(?i:b)c$", ["aBc", "abc", "aBC"], ["aBc", "abc"]),
    ("^(?i:a(?-i:b))$", ["Ab", "AB"], ["Ab"]),
    ("(?i)^[^k]$", ["K", "k", "\u212a", "x"], ["x"]),
    ("(?s)^.$", ["\n", "a"], ["\n", "a"]),
    ("(?m)^b$", ["a\nb", "b\rc", "ab", "b"], ["a\nb", "b\rc", "b"]),
    (r"\Ba\B", ["a", "bab", "ba"], ["bab"]),
    (r"\B", ["", "a", "ab"], ["", "ab"]),
    (r"^\p{Lu}\P{L}$", ["É1", "é1", "ÉA"], ["É1"]),
    (r"^[\p{L}\p{Nd}_]+$", ["naïve٣_", "a-b"], ["naïve٣_"]),
    (r"^\p{gc=Decimal_Number}\p{digit}$", ["1٣", "1a"], ["1٣"]),
    (r"^[^\p{Letter}]\p{ASCII_Hex_Digit}\p{Any}$", ["1fz", "xfz", "1gz"], ["1fz"]),
    ("^(?!foo)[a-z]+$", ["fo", "foo", "food", "bar"], ["fo", "bar"]),
    ("^(?=.*\\d)(?=.*[a-z]).{4,}$", ["ab12", "abcd", "a1"], ["ab12"]),
    ("(^a|x)(b|$)", ["ab", "a", "x", "yx", "ya", "yab", "yxb"], ["ab", "a", "x", "yx", "yxb"]),
    ("a^b", ["ab", "a^b"], []),
    ("(?:a|)", ["", "b"], ["", "b"]),
    ("^(?:a{0}b)$", ["b", "ab"], ["b"]),
]


@pytest.mark.parametrize(("pattern", "texts", "expected"), CASES)
def test_known_patterns(pattern: str, texts: list[str], expected: list[str]) -> None:
    assert held(pattern, texts) == expected


@pytest.mark.parametrize(
    ("pattern", "reason", "place"),
    [
        (r"(a)\1", "a backreference is not supported", 3),
        (r"(?<n>a)\k<n>", "a backreference is not supported", 7),
        (r"(?P<n>a)(?P=n)", "a backreference is not supported", 8),
        (r"a(?>b)", "an atomic group is not supported", 1),
        (r"(a)?(?(1)b|c)", "a conditional is not supported", 4),
        (r"(?<=a\b)b", "a look inside a lookbehind is not supported", 0),
        (r"a**", "there is nothing to repeat", 2),
        (r"^*", "there is nothing to repeat", 1),
        (r"a|{2}", "there is nothing to repeat", 2),
        (r"a{3,2}", "the wrong way round", 1),
        (r"a{,5}", "write {0,n}", 1),
        (r"a{1234567890123456789}", "a count is too great", 1),
        (r"[b-a]", "the wrong way round", 1),
        (r"x[ab", "a character class is not closed", 1),
        (r"(a", "a parenthesis is not closed", 0),
        (r"a)", "a parenthesis closes that was not opened", 1),
        (r"a\y", r"\y is not an escape", 1),
        ("a\\", "ends too early", 2),
        (r"\x4", r"\x is not complete", 0),
        (r"\u{110000}", r"\u is not complete", 0),
        (r"\01", r"\0 is not complete", 0),
        (r"\p{Script=Greek}", "scripts are not known", 0),
        (r"a\p{Nope}", r"\p{Nope} is not a property", 1),
        (r"\pL", "the name of a property in braces", 0),
        (r"a(?i)b", "this kind of group is not known", 1),
    ],
)
def test_faults_are_named_with_their_place(pattern: str, reason: str, place: int) -> None:
    with pytest.raises(RequestError) as caught:
        parse_ecma(pattern)
    assert caught.value.code == "bad_grammar"
    message, shown, caret = str(caught.value).split("\n")
    assert reason in message
    assert message.endswith(f"at place {place}")
    assert caret.index("^") - 2 == place
    assert shown == f"  {pattern}"


def test_deep_nesting_is_refused_and_less_is_read() -> None:
    with pytest.raises(RequestError) as caught:
        parse_ecma("(" * 100_000)
    assert caught.value.code == "grammar_budget"
    deep = "(?:" * MAX_DEPTH + "a" + ")*" * MAX_DEPTH
    assert matches(f"^{deep}$", ["aa", "b"]) == [True, False]


@pytest.mark.parametrize(
    "name", ["pattern.json", "optional/ecmascript-regex.json", "optional/non-bmp-regex.json"]
)
def test_the_suite_agrees(name: str) -> None:
    for case in suite(name):
        if isinstance(case.data, str) and "pattern" in case.schema:
            assert matches(case.schema["pattern"], [case.data]) == [case.is_valid], case
        if isinstance(case.data, dict) and "additionalProperties" in case.schema:
            (pattern,) = case.schema["patternProperties"]
            assert all(matches(pattern, list(case.data))) == case.is_valid, case


@pytest.mark.parametrize("name", ["Lu", "Cn", "Co", "Cs", "Nd", "Sm"])
def test_categories_are_those_of_every_character(name: str) -> None:
    ranges = property_of(name)
    codes = {code for low, high in ranges for code in range(low, high + 1)}
    chance = random.Random(5)
    borders = [b + d for low, high in ranges for b in (low, high) for d in (-1, 0, 1)]
    for code in [*borders, *(chance.randrange(0x110000) for _ in range(20_000))]:
        if 0 <= code <= 0x10FFFF:
            assert (unicodedata.category(chr(code)) == name) == (code in codes), hex(code)
