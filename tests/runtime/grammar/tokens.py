"""A small vocabulary with all that is awkward, and the slow definition of a mask over it."""

from __future__ import annotations

import random

import numpy as np

from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.matcher import PooledGrammar
from plait.runtime.grammar.node import Node
from plait.runtime.grammar.pool import IDLE, Pool
from plait.runtime.grammar.spec import (
    Bitmask,
    CompiledGrammar,
    GrammarKind,
    GrammarMatcher,
    GrammarSpec,
)
from plait.runtime.grammar.vocabulary import Vocabulary

EOS, SECOND_EOS, CONTROL = 700, 701, 702
WIDTH = 760  # padded past the 703 ids

_PARTS = ["a", "b", "ab", "é", "🙏", "0", "12", " ", "-", "x", "\n", '"', "ж", "\u212a"]
_JSON = ['"', "\\", "\\n", "\\u00", "e9", '":', '",', "[", "]", "],[", "{", "}", "(", "))", ","]


def synthetic_tokens() -> list[bytes | None]:
    """Give single bytes, then random longer tokens: words, UTF-8 parts, digits, doubles."""
    rng = random.Random(5)
    tokens: list[bytes | None] = [bytes((b,)) for b in range(256)]
    while len(tokens) < 647:
        parts = rng.choice([_PARTS, _PARTS, _PARTS + _JSON, ["[", "]", "a", "]]", '"', "("]])
        data = "".join(rng.choices(parts, k=rng.randint(1, 4))).encode()
        start = rng.choice([0, 0, 0, 1])
        tokens.append(data[start : rng.choice([len(data), len(data), -1]) or None] or b"aa")
    tokens += [b"aa", b"ab", b"a" * 12, b"ab" * 11, b"]" * 18, "éa".encode() * 9] + [None] * 47
    return [*tokens, b"</s>", None, None]


TOKENS = synthetic_tokens()
VOCABULARY = Vocabulary(TOKENS, (EOS, SECOND_EOS), WIDTH)
BYTES = Vocabulary([bytes((b,)) for b in range(256)], (256,), 257)


def grammar_of(kind: GrammarKind, *source: str) -> CompiledGrammar:
    """Compile a constraint over VOCABULARY."""
    compiler = GrammarCompiler(VOCABULARY, timeout_s=10.0, max_states=200_000)
    return compiler.compile(GrammarSpec(kind, source))


def matcher_of(kind: GrammarKind, *source: str) -> GrammarMatcher:
    """Start at the beginning of a constraint."""
    return grammar_of(kind, *source).matcher()


def matcher_at(node: Node, pool: Pool) -> GrammarMatcher:
    """Start at the beginning of a node; `pool` is over VOCABULARY."""
    with pool.using(IDLE):
        start = pool.pushdown.closure(pool.pushdown.push(node, None))
    return PooledGrammar(pool, start, 0, node).matcher()


def mask(matcher: GrammarMatcher) -> Bitmask:
    """Give the bitmask of the next token."""
    row = np.full(VOCABULARY.mask_len, -1, np.int32)
    matcher.fill_bitmask(row)
    return row


def ids(row: Bitmask) -> list[int]:
    """Give the ids that are set."""
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def allowed(matcher: GrammarMatcher) -> list[int]:
    """Give the ids of the tokens that may come next."""
    return ids(mask(matcher))


def stepped(matcher: GrammarMatcher) -> list[int]:
    """Give the slow definition: try every token, byte by byte, on a fork."""
    found: list[int] = []
    for token_id, data in enumerate(TOKENS):
        fork = matcher.fork()
        if token_id in (EOS, SECOND_EOS):
            is_right = matcher.is_accepting
        else:
            is_right = bool(data) and all(map(fork.accept, data or b""))  # single bytes: id = byte
        if is_right:
            found.append(token_id)
    return found


def is_text(token_id: int) -> bool:
    """Say whether a token is no end token."""
    return token_id not in (EOS, SECOND_EOS)


def follow(start: GrammarMatcher, rng: random.Random, num_tokens: int) -> None:
    """Walk at random for a while; each mask on the way must equal stepping."""
    matcher = start.fork()
    for _ in range(num_tokens):
        choices = allowed(matcher)
        assert choices == stepped(matcher)
        assert choices, "a mask led into a dead end"
        texts = [i for i in choices if is_text(i)]
        if not texts:
            return
        # Long tokens are few; take them half of the time.
        long = [i for i in texts if len(TOKENS[i] or b"") > 2]
        assert matcher.accept(rng.choice(long if long and rng.random() < 0.5 else texts))


def walk(matcher: GrammarMatcher, rng: random.Random, num_tokens: int) -> bytes:
    """Follow random allowed tokens; end as soon as the text may end after `num_tokens`."""
    taken: list[int] = []
    while not matcher.is_finished:
        choices = allowed(matcher)
        assert choices, "a mask led into a dead end"
        if len(taken) >= num_tokens and EOS in choices:
            choices = [EOS]
        elif len(taken) < num_tokens:
            choices = [i for i in choices if is_text(i)] or choices
        token_id = rng.choice(choices)
        assert matcher.accept(token_id)
        taken.append(token_id)
    return text_of(taken)


def text_of(taken: list[int]) -> bytes:
    """Give the text of tokens."""
    return b"".join(TOKENS[i] or b"" for i in taken if is_text(i))


def bytes_along(matcher: GrammarMatcher, num_steps: int) -> bytes:
    """Follow the masks, taking one token after the other in turn."""
    row = np.zeros(BYTES.mask_len, np.int32)
    found = bytearray()
    for step in range(num_steps):
        matcher.fill_bitmask(row)
        texts = [i for i in ids(row) if i < 256]
        if not texts:
            break
        found.append(texts[step * 7 % len(texts)])
        assert matcher.accept(found[-1])
    return bytes(found)
