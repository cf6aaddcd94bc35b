"""Masks at the places of Lark grammars are what stepping each token byte by byte gives."""

from __future__ import annotations

import random

import numpy as np
import pytest

from plait.runtime.grammar import greedy as greedy_module
from plait.runtime.grammar import masks as masks_module
from plait.runtime.grammar import matcher as matcher_module
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.spec import GrammarMatcher, GrammarSpec
from plait.runtime.grammar.vocabulary import Vocabulary

from .test_lark import CASES

STOPS = ("\n\n", ";end", "()")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a step take as long as it needs beside other tests and their garbage."""
    monkeypatch.setattr(matcher_module, "STEP_TIMEOUT_S", 60.0)


class Tried:
    """A grammar over a vocabulary of pieces of its own texts, and of runs of its characters."""

    def __init__(self, name: str, stops: tuple[str, ...] = ()) -> None:
        source, texts = CASES[name]
        rng = random.Random(name)
        whole = " ".join((*texts, *stops)).encode()
        tokens = {bytes((b,)) for b in range(256)}
        for _ in range(300):
            start = rng.randrange(len(whole))
            tokens.add(whole[start : start + rng.choice((2, 3, 5, 9))])
        tokens.update(bytes((b,)) * n for b in set(whole) for n in (2, 7))
        pieces = [bytes((b,)) for b in set(whole)]
        tokens.update(b"".join(rng.choices(pieces, k=3)) for _ in range(200))
        self.tokens = sorted(tokens, key=lambda data: (len(data), data))
        self.eos = len(tokens)
        self.vocabulary = Vocabulary(self.tokens, (self.eos,), self.eos + 1)
        compiler = GrammarCompiler(self.vocabulary, 30.0, 1_000_000)
        self.grammar = compiler.compile(GrammarSpec("lark", (source,), stops))
        self.texts = [text for text in texts if self.begins(text.encode())]

    def begins(self, data: bytes) -> bool:
        """Say whether a text can begin so."""
        return all(map(self.grammar.matcher().accept, data))

    def allowed(self, matcher: GrammarMatcher) -> list[int]:
        """Give the tokens of the mask."""
        row = np.full(self.vocabulary.mask_len, -1, np.int32)
        matcher.fill_bitmask(row)
        return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()

    def stepped(self, matcher: GrammarMatcher) -> list[int]:
        """Give the slow definition: each token byte by byte."""
        found: list[int] = []
        for token_id, data in enumerate(self.tokens):
            fork = matcher.fork()
            if all(fork.accept(byte) for byte in data):  # single bytes come first: id = byte
                found.append(token_id)
        return found + [self.eos] * matcher.is_accepting

    def follow(self, rng: random.Random, num_tokens: int, start: bytes = b"") -> None:
        """Walk at random; each mask on the way must equal stepping."""
        matcher = self.grammar.matcher()
        assert all(map(matcher.accept, start))
        for _ in range(num_tokens):
            choices = self.allowed(matcher)
            assert choices == self.stepped(matcher), start
            texts = [i for i in choices if i < self.eos]
            if not texts:
                return
            shown = [i for i in texts if self.tokens[i].isascii()] or texts
            long = [i for i in shown if len(self.tokens[i]) > 1] or shown
            token = rng.choice(long if rng.random() < 0.7 else shown)
            assert matcher.accept(token)
            start += self.tokens[token]


@pytest.mark.parametrize("name", CASES)
def test_a_mask_equals_stepping_at_random_places(name: str) -> None:
    tried = Tried(name)
    for seed in range(4):
        tried.follow(random.Random(seed), 14)


@pytest.mark.parametrize("name", CASES)
def test_a_mask_equals_stepping_inside_whole_texts(name: str) -> None:
    tried, rng = Tried(name), random.Random(3)
    for text in tried.texts:
        data = text.encode()
        for place in rng.sample(range(len(data) + 1), min(8, len(data) + 1)):
            tried.follow(rng, 2, data[:place])


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("json", b'{"a":[[{"b":[' * 9),
        ("json", b"[" * 60 + b"1" + b"]" * 55),
        ("arithmetic", b"-(" * 40 + b"a" + b")" * 3),
        ("arithmetic", b"1+2*(" * 20 + b"f(x, -(3" + b")" * 20),
        ("keywords", b"if not a:{" * 15 + b"}" * 9),
        ("comments", b"<a/* b */" * 30 + b">" * 25),
    ],
)
def test_a_mask_equals_stepping_deep_in_a_recursion(name: str, start: bytes) -> None:
    tried = Tried(name)
    for seed in range(2):
        tried.follow(random.Random(seed), 8, start)


@pytest.mark.parametrize("name", ["arithmetic", "keywords", "sql"])
def test_a_mask_equals_stepping_where_a_stop_may_follow(name: str) -> None:
    tried = Tried(name, STOPS)
    for text in tried.texts:
        for seed in range(3):
            tried.follow(random.Random(seed), 3, text.encode())


@pytest.mark.parametrize(
    ("module", "limit", "value"),
    [
        (masks_module, "NEAR", 1),
        (masks_module, "NEAR", 3),
        (masks_module, "FAR", 2),
        (greedy_module, "NARROW", 0),
        (greedy_module, "NARROW", 1 << 40),
        (greedy_module, "MAX_KEPT", 1),
    ],
)
def test_what_is_cut_or_found_another_way_is_the_same(
    module: object, limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, limit, value)
    for name in CASES:
        tried, rng = Tried(name), random.Random(5)
        tried.follow(rng, 6)
        data = max(tried.texts, key=len).encode()
        tried.follow(rng, 3, data[: len(data) // 2])
