"""What a terminal takes, against `re.match`."""

from __future__ import annotations

import random
import re

from plait.runtime.errors import RequestError
from plait.runtime.grammar.derive import Derivatives
from plait.runtime.grammar.language import Language, is_nullable
from plait.runtime.grammar.lark_looks import Unclear
from plait.runtime.grammar.lark_scan import Scan
from plait.runtime.grammar.lark_terminal import Matches
from plait.runtime.grammar.pool import Pool
from plait.runtime.grammar.regex import parse
from plait.runtime.grammar.vocabulary import Vocabulary

POOL = Pool(Vocabulary([bytes((b,)) for b in range(256)], (), 256))
DERIVATIVES = Derivatives(POOL.languages, POOL.languages.spellable)
MATCHES = Matches(POOL.languages, DERIVATIVES)
PARTS = ["a", "b", "c", "[ab]", "[^a]", ".", r"\n", "ab", "bc"]
LOOKS = [
    "(?=a)",
    "(?!b)",
    "(?![ab])",
    "(?!ab)",
    "(?<=a)",
    "(?<![ab])",
    r"\b",
    "$",
    "(?m:$)",
    "(?m:^)",
]
COUNTS = ["*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}", "{2,}", "{0,2}?", "{1,}?"]


def random_regex(rng: random.Random, depth: int = 0) -> str:
    kind = rng.random()
    if depth > 3 or kind < 0.35:
        return rng.choice(PARTS)
    first, second = random_regex(rng, depth + 1), random_regex(rng, depth + 1)
    if kind < 0.55:
        return first + second
    if kind < 0.7:
        return f"(?:{first}|{second})"
    return f"(?:{first}){rng.choice(COUNTS)}" if kind < 0.9 else rng.choice(LOOKS) + first


def walk(language: Language, text: str) -> list[Language]:
    """Give the language after each beginning of a text."""
    found = [language]
    for char in text:
        rows = DERIVATIVES.row(found[-1])
        after = (a for chars, a in rows if any(x <= ord(char) <= y for x, y in chars.ranges))
        found.append(next(after, POOL.languages.nothing))
    return found


def ends(language: Language, text: str) -> list[int]:
    """Give the lengths of the beginnings of a text that are in a language."""
    return [end for end, after in enumerate(walk(language, text)) if is_nullable(after)]


def test_a_terminal_takes_what_re_takes() -> None:
    rng = random.Random(4)
    num_known = num_open = 0
    for _ in range(600):
        pattern = random_regex(rng) + rng.choice(["", "", "", *LOOKS])
        try:
            match = MATCHES.find(parse(pattern))
        except (Unclear, RequestError):
            continue
        num_known += 1
        num_open += match.open is not None
        for _ in range(30):
            text = "".join(rng.choices("abc\n", k=rng.randint(0, 7)))
            expected = re.match(pattern, text)
            taken = ends(match.token, text)
            machine = walk(match.token, text)[taken[-1]].payload if taken else None
            pending = machine.pending if isinstance(machine, Scan) else ()
            if not any(ends(language, text[taken[-1] :]) for language in pending):
                assert taken[-1:] == ([] if expected is None else [expected.end()]), (pattern, text)
            is_match = bool(ends(match.sure, text))
            is_match |= match.open is not None and len(text) in ends(match.open, text)
            assert is_match == (expected is not None), (pattern, text)
    assert num_known > 300
    assert num_open > 50


def test_what_is_taken_whole_stays_a_plain_language() -> None:
    for pattern in (r"[a-z]+", r"\d+(\.\d+)?", "0|[1-9][0-9]*", r'"[^"]*"'):
        assert MATCHES.find(parse(pattern)).token.kind != "machine"
    assert MATCHES.find(parse('".*?"')).token.kind == "machine"
