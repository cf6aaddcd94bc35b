"""The automaton of a regex accepts exactly what Python's fullmatch accepts."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.errors import RequestError
from plait.runtime.grammar.build import build_language
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.derive import Derivatives
from plait.runtime.grammar.language import Language, is_nullable
from plait.runtime.grammar.languages import Languages
from plait.runtime.grammar.pool import IDLE
from plait.runtime.grammar.regex import parse
from plait.runtime.grammar.spec import GrammarSpec

from .tokens import BYTES


def compiler() -> GrammarCompiler:
    return GrammarCompiler(BYTES, timeout_s=10.0, max_states=50_000)


def accepts(pattern: str, texts: list[str]) -> list[bool]:
    grammar = compiler().compile(GrammarSpec("regex", (pattern,)))
    found: list[bool] = []
    for text in texts:
        matcher = grammar.matcher()
        is_alive = all(map(matcher.accept, text.encode()))
        found.append(is_alive and matcher.is_accepting)
    return found


def error(pattern: str) -> RequestError:
    with pytest.raises(RequestError) as caught:
        compiler().compile(GrammarSpec("regex", (pattern,)))
    return caught.value


CASES = [
    (r"\d{4}-\d{2}", ["2024-01", "٢٠٢٤-01", "2024-1", "2024-011"]),
    (r"[^\W\d_]+", ["naïve", "Ωμέγα", "名前", "a1", "_"]),
    (r"a.c", ["abc", "a\nc", "a🙏c", "ac"]),
    (r"(?s)a.c", ["a\nc", "abc"]),
    (r"(?i)kelvin", ["KELVIN", "\u212aelvin", "kelvim"]),
    ("(?i:ß|\u017f)x", ["ßx", "ẞx", "Sx", "sx", "ßX"]),
    (r"(?ai)k\w", ["\u212aa", "Ka", "ké"]),
    (r"(?i)[^k]", ["k", "K", "\u212a", "x"]),
    (r"(?x) \d{3} - \d{4}  # phone", ["555-1234", "555 - 1234"]),
    (r"^abc$", ["abc", "abc\n", "xabc"]),
    (r"\Aabc\Z", ["abc", "abc\n"]),
    (r"^a|b$", ["a", "b", "ab"]),
    (r"(^a|x)(b|$)", ["ab", "a", "x", "xb", "aa"]),
    (r"a^b|c$d|e", ["ab", "a", "cd", "e"]),
    (r"^$", ["", "\n"]),
    (r"(?m)^abc$", ["abc", "abc\n"]),
    (r"<.+?>", ["<a><b>", "<>", "<a>"]),
    (r"(?P<year>\d)(?:x)(y)", ["1xy", "xy"]),
    (r"[😀-🙏]+", ["😀", "🙏😃", "a"]),
    (r"[.]|[a-]|[]x]", [".", "a", "-", "]", "x", "b"]),
    (r"\x41\u00e9\U0001f64f\n\t\\\.", ["Aé🙏\n\t\\.", "Aé🙏\n\t\\x"]),
    (r"[\s\S]{2}", ["a\n", "é\x00", "a"]),
    (r"\D\S\W", ["a! ", "1a ", "aé "]),
    (r"(a|aa)*b", ["b", "aaab", "aaa"]),
    (r"(?:a{0,2}b?){0,3}", ["", "aab", "aabaabaab", "aaaaaaa", "bbbb"]),
    (r"(?:|a)+", ["", "aaa"]),
    (r"(?:a{2,3}){2}", ["aaa", "aaaa", "aaaaaa", "aaaaaaa"]),
    (r"(?:a{2}){0,2}", ["", "aa", "aaa", "aaaa", "aaaaaa"]),
    (r"(?:a?){3}|b{0}", ["", "aaa", "aaaa"]),
    (r"", ["", "a"]),
    (r"x(?=a)[ab]+(?<!b)", ["xa", "xab", "xaba", "xb", "xba"]),
    (r"(?!.*(?:foo|bar)).*", ["", "fo", "foo", "afoob", "xbar", "ba"]),
    (r"(?=.*\d)(?=.*[a-z]).{3,5}", ["a1", "a1b", "aaa", "111", "1a1a1", "1a1a1a"]),
    (r"(?<=)a(?<=a)b(?<!a)", ["ab", "a"]),
    (r"(?:a(?!b)|ab(?=c)|c)*", ["aa", "ab", "abc", "ca", "acab"]),
    (r"\ba\b \bb|a\Bb|\B|\B-\B", ["a b", "ab", "a-b", "", "-"]),
    (r"(?a:\bé\b|\Bé\B)é?", ["é", "éé"]),
    (r"a++b|a*+a|[ab]?+c|x{2,3}+x", ["aab", "aa", "a", "bc", "c", "xxx", "xxxx"]),
    (r"(?>aa|a)b|(?>a|ab)c|(?>a*)b", ["aab", "ab", "ac", "abc", "aaab"]),
    (r"(?>(?:b|bc)(?:x|xy))y|(?>)z", ["bxy", "bxyy", "bcxy", "z"]),
    (r"(?:^a$\n?)+|a\Zb?", ["a", "a\n", "a\na"]),
    (r"(?m:^a$\n?)+|(?m:^$)\n\n", ["a", "a\n", "a\na", "\n\n", "aa"]),
    (r"a$\n?", ["a", "a\n", "a\n\n"]),
    (r"(?m)a\n^b", ["a\nb", "ab"]),
    (r"(?:(?=a)a|(?!a)b){3}", ["aba", "abab"]),
    (r"(?:(?<![ab])[ab]-?){2,3}", ["a-b", "ab", "a-b-a", "a-b-a-b"]),
    (r"\u07ff|\u0800|\uffff|\U00010000|\U0010ffff", ["\u07ff", "\u0800", "\uffff", "\U0010ffff"]),
]


@pytest.mark.parametrize(("pattern", "texts"), CASES)
def test_known_patterns_have_pythons_meaning(pattern: str, texts: list[str]) -> None:
    expected = [re.fullmatch(pattern, text) is not None for text in texts]
    assert accepts(pattern, texts) == expected


ATOMS = [
    *["a", "b", "é", "🙏", ".", "[ab]", "[^a]", r"\d", r"\w", r"\s", "[à-ü]", "A", "1", "", "ab"],
    *[
        r"\b",
        r"\B",
        "^",
        "$",
        "(?m:^)",
        "(?m:$)",
        r"\Z",
        r"\n",
        "a++",
        "[ab]*+",
        "b?+",
        "(?>a|ab|b)",
    ],
    *["(?<=a)", "(?<!ab)", "(?<=b.)", r"(?<!\n)", r"(?<=\w)", "(?<=[ab]1)"],
]
REPEATS = ["*", "+", "?", "*?", "{2}", "{1,3}", "{0,2}?", "{2,}", "{3,9}"]
PATTERNS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}|{p[1]})"),
        st.tuples(inner, st.sampled_from(REPEATS)).map(lambda p: f"(?:{p[0]}){p[1]}"),
        st.tuples(st.sampled_from(["(?=", "(?!"]), inner).map(lambda p: f"{p[0]}{p[1]})"),
        st.tuples(st.sampled_from(["(?i:", "(?s:", "(?a:", "(?m:"]), inner).map(
            lambda p: f"{p[0]}{p[1]})"
        ),
    ),
    max_leaves=9,
)
TEXTS = st.text(alphabet="abAé1🙏\n İ", max_size=7)


@settings(derandomize=True, max_examples=400, deadline=None)
@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=12))
def test_random_patterns_have_pythons_meaning(pattern: str, texts: list[str]) -> None:
    languages = Languages(IDLE)
    derivatives = Derivatives(languages, languages.sets.all)
    language = build_language(parse(pattern), languages)
    for text in texts:
        expected = re.fullmatch(pattern, text) is not None
        assert matches(derivatives, language, text) == expected
        assert derivatives.is_live(language) or not expected


def matches(derivatives: Derivatives, language: Language, text: str) -> bool:
    """Follow the derivatives; a prefix of a text that matches is never dead."""
    places = [language]
    for char in text:
        row = derivatives.row(places[-1])
        after = [to for chars, to in row if any(a <= ord(char) <= b for a, b in chars.ranges)]
        if not after:
            return False
        (place,) = after  # the sets are apart
        places.append(place)
    is_match = is_nullable(places[-1])
    assert not is_match or all(map(derivatives.is_live, places))
    return is_match


@settings(derandomize=True, max_examples=50, deadline=None)
@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=12))
def test_random_patterns_have_pythons_meaning_token_by_token(
    pattern: str, texts: list[str]
) -> None:
    expected = [re.fullmatch(pattern, text) is not None for text in texts]
    if any(expected):
        assert accepts(pattern, texts) == expected
    else:
        with contextlib.suppress(RequestError):  # where no text matches at all
            assert not any(accepts(pattern, texts))


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    st.lists(st.text("abé\u212aß-]^\\ж", min_size=1, max_size=3), min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from(["", "(?i)", "(?a)", "(?ia)"]),
)
def test_random_classes_have_pythons_meaning(parts: list[str], negate: bool, flags: str) -> None:
    body = "".join(re.escape(c) for part in parts for c in part)
    pattern = f"{flags}[{'^' if negate else ''}{body}\\d]"
    texts = list("abABéÉkK\u212aßẞs\u017f-]^\\жЖ1٢\n")
    expected = [re.fullmatch(pattern, text) is not None for text in texts]
    assert accepts(pattern, texts) == expected


@pytest.mark.parametrize(
    ("pattern", "name", "place"),
    [
        (r"(a)\1", "backreference", 3),
        (r"(?P<n>a)(?P=n)", "backreference", 8),
        (r"(a)(?(1)b|c)", "conditional", 3),
        (r"[(?<=](?<=a\b)y", "look inside a lookbehind", 6),
        (r"[*+]+(?:ab)*+", "possessive repeat", 11),
        (r"\(?>(?>a|b*)", "atomic group", 4),
    ],
)
def test_what_is_not_regular_is_refused_by_name_and_place(
    pattern: str, name: str, place: int
) -> None:
    found = error(pattern)
    assert found.code == "bad_grammar"
    assert re.search(f"{name}.* is not supported", str(found))
    assert f"at place {place}\n" in str(found)
    assert str(found).splitlines()[-1] == "  " + " " * place + "^"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing )"),
        ("a{3,1}", "min repeat greater than max"),
        (r"\1", "invalid group reference"),
        ("a|*", "nothing to repeat"),
        ("a{99999999999}", "too large"),
        ("[b-a]", "bad character range"),
        (r"\d" * 40 + "(" + "a" * 40, "at place 80"),
        ("[\ud800]", "no text matches"),
        ("a(?!a|b)[ab]", "no text matches"),
    ],
)
def test_a_broken_pattern_says_why_and_where(pattern: str, reason: str) -> None:
    found = error(pattern)
    assert (found.code, reason in str(found)) == ("bad_grammar", True)


def test_a_pattern_nested_too_deeply_is_an_error_and_not_a_crash() -> None:
    assert error("(" * 5000 + ")" * 5000).code == "grammar_budget"
