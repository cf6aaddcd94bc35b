"""Digests of places: the same in every process, and never the same for two walks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.grammar.build import build_language
from plait.runtime.grammar.digest import Digests
from plait.runtime.grammar.expr import Expr
from plait.runtime.grammar.kept import kept
from plait.runtime.grammar.language import Language
from plait.runtime.grammar.piece import Piece
from plait.runtime.grammar.pool import IDLE, Pool
from plait.runtime.grammar.regex import parse
from plait.runtime.grammar.schema.multiples import Grid, Place
from plait.runtime.grammar.terminal import LocalState
from plait.runtime.grammar.walk import Walker
from plait.runtime.grammar.words import Listed, Unlisted, others, words

from .naive import PLACED
from .tokens import VOCABULARY

PATTERNS = [
    r"[a-z]{1,20}", r"[a-z]{1,21}", r"[a-z]{2,20}", r"[a-z]*", r"[a-y]*", r"(a|bc|d[ef]){0,9}x",
    r"(?=.*a)(?=.*\d).{3,40}", r"(?!.*ab).{0,30}", r"(?!.*ba).{0,30}", r"\w+ \w+", r"\bab\b.*",
    r".*(?<=a)b", r".*(?<!a)b", r".*(?<=b)a", r"(?s).*", r".*", r"[^\"]*", r"é+|ж{2,8}|🙏.",
    r"[\u0370-\u03ff]+", "(ab|ac|b)*a(a|b){6}", r"x{6000}", r"([ab]{1,3}-){2,5}", r"", r"(?:^a|b)+",
]  # fmt: skip
LISTED = [("ab", "abc", "b"), ("ab", "abd", "b"), ("é", "x"), ("a",)]
MAX_PLACES = 25


def starts(pool: Pool, patterns: Iterable[str]) -> dict[str, LocalState]:
    """Give the starts of the patterns, plain and in JSON strings, and of lists of words."""
    found: dict[str, LocalState] = {}
    with pool.using(IDLE):
        for pattern in patterns:
            language = build_language(parse(pattern), pool.languages)
            found[f"plain {pattern}"] = pool.locals.start(language, "plain")
            found[f"json {pattern}"] = pool.locals.start(language, "json")
        for texts in LISTED:
            listed, unlisted = words(texts, pool.languages), others(texts, pool.languages)
            found[f"listed {texts}"] = pool.locals.start(listed, "plain")
            found[f"unlisted {texts}"] = pool.locals.start(unlisted, "json")
        found["literal"] = pool.locals.literal(b"ab")
    return found


def along(start: LocalState, pool: Pool) -> dict[bytes, LocalState]:
    """Give the first places behind a start, by the bytes that lead there."""
    found = {b"": start}
    pending = [b""]
    with pool.using(IDLE):
        while pending and len(found) < MAX_PLACES:
            text = pending.pop(0)
            groups = sorted(found[text].groups, key=lambda group: min(group[0]))
            fresh = [(min(data), after) for data, after in groups if after not in found.values()]
            steps = {text + bytes((byte,)): after for byte, after in fresh}
            found.update(steps)
            pending.extend(steps)
    return found


def places(pool: Pool, patterns: Iterable[str]) -> Iterator[tuple[str, LocalState]]:
    """Give all first places of the patterns, each with what led there."""
    for name, start in starts(pool, patterns).items():
        for text, state in along(start, pool).items():
            yield f"{name} {text!r}", state


def table(patterns: Iterable[str]) -> dict[str, str]:
    """Give the digests of all first places of the patterns, as hex."""
    pool = Pool(VOCABULARY)
    digests = Digests(pool.classes)
    found: dict[str, str] = {}
    for name, state in places(pool, patterns):
        for horizon in (3, VOCABULARY.longest):
            with pool.using(IDLE):
                twin = state.over(horizon)
            found[f"{name} {horizon}"] = _hex(digests.find(twin))
    return found


def _hex(digest: bytes | None) -> str:
    return "none" if digest is None else digest.hex()


def walked(local: LocalState) -> list[tuple[bytes, tuple[int, ...]]]:
    """Walk from a place over each slice, with nothing kept."""
    walker = Walker[LocalState](lambda place: place.groups, lambda place: place.is_last)
    found = [walker.walk(local, part, IDLE) for part in VOCABULARY.slices]
    return [(walk.allowed.tobytes(), walk.exits) for walk in found]


def test_digests_do_not_depend_on_the_order_in_which_a_pool_was_filled() -> None:
    ours, theirs = table(PATTERNS), table(reversed(PATTERNS))
    assert len(ours) > 500
    assert ours == theirs


def test_another_process_gives_the_same_digests() -> None:
    code = "import json; from grammar.test_digest import *; print(json.dumps(table(PATTERNS[::3])))"
    expected = table(PATTERNS[::3])
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    for seed in "12":
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
        printed = subprocess.run(
            [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, env=environment
        ).stdout
        assert json.loads(printed) == expected


def test_places_of_equal_digests_have_equal_walks() -> None:
    known: dict[bytes, object] = {}
    num_again = 0
    for patterns in (PATTERNS, PATTERNS[::-1], PATTERNS[1::2]):
        pool = Pool(VOCABULARY)
        digests = Digests(pool.classes)
        for _, state in places(pool, patterns):
            digest = digests.find(state)
            if digest is None:
                continue
            num_again += digest in known
            with pool.using(IDLE):
                walk = walked(state)
            assert known.setdefault(digest, walk) == walk
    assert num_again > len(known) / 2 > 200


def test_random_expressions_share_a_digest_only_with_their_walk() -> None:
    known: dict[bytes, object] = {}

    @settings(derandomize=True, max_examples=300, deadline=None)
    @given(PLACED, st.booleans())
    def check(expr: Expr, is_json: bool) -> None:
        pool = Pool(VOCABULARY)
        with pool.using(IDLE):
            language = build_language(expr, pool.languages)
            state = pool.locals.start(language, "json" if is_json else "plain")
            digest = Digests(pool.classes).find(state)
            if digest is not None:
                walk = walked(state)
                assert known.setdefault(digest, walk) == walk

    check()
    assert len(known) > 100


def test_what_is_told_apart_only_by_code_has_no_digest() -> None:
    pool = Pool(VOCABULARY)
    digests = Digests(pool.classes)
    with pool.using(IDLE):
        loop = pool.locals.start(build_language(parse("((?!ab).)*"), pool.languages), "plain")
        inside = next(after for _, after in loop.groups if after.parts)
        sevens = multiples_of(pool)
        word = pool.locals.start(pool.languages.word("ab"), "plain")
        assert digests.find(word) is not None
        for place in (loop, inside, pool.locals.start(sevens, "plain"), kept(pool.locals, word)):
            assert digests.find(place) is None


def multiples_of(pool: Pool) -> Language:
    grid = Grid(7, 0, "0", None, 9)
    return pool.languages.machine(Place(grid, 0, -1, 0, 0, -1))


def test_all_that_a_place_holds_was_looked_at() -> None:
    """A new field may change walks; then `Digests` must take it in, and it be named here."""
    derived = {"_edges", "_groups", "_owner", "_twins", "guard", "is_closed", "is_final"}
    of_what_follows = {"is_greedy"}
    digested = {"language", "literal", "parts", "spelling"}
    assert set(LocalState.__slots__) == derived | of_what_follows | digested
    derived = {"has_behind", "is_counted", "is_nullable", "is_plain", "nulls", "number", "rows"}
    digested = {"chars", "high", "kind", "low", "parts", "payload"}
    assert set(Language.__slots__) == derived | digested | {"weight"}
    assert [field.name for field in fields(Piece)] == ["part", "whole", "languages", "derivatives"]
    assert [field.name for field in (*fields(Listed), *fields(Unlisted))] == [
        *("rests", "sets", "rests")
    ]


def test_a_deep_language_has_a_digest() -> None:
    pool = Pool(VOCABULARY)
    with pool.using(IDLE):
        place = pool.locals.start(pool.languages.word("ab" * 5000), "plain")
    assert Digests(pool.classes).find(place) is not None
