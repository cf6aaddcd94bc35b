"""Masks over the default model's own vocabulary, each token of it checked."""

from __future__ import annotations

import random

import numpy as np
import pytest

from plait.runtime.grammar.node import Node
from plait.runtime.grammar.pool import IDLE, Pool
from plait.runtime.grammar.state import State
from plait.runtime.grammar.vocabulary import Vocabulary
from plait.runtime.load.store import Store, default_home
from plait.runtime.load.tokenizer_source import tokenizer_source
from plait.runtime.model.tokenizer import TextTokenizer

from .rules import arrays, brackets, string, terminal
from .tokens import ids

pytestmark = pytest.mark.slow  # needs the default model

PATTERNS = [
    *["[0-9]{3}-[a-z]+", ".*", "[a-z]{1,200}", r"\w{1,30}( \w{1,30}){0,20}", "[ab]*a[ab]{13}"],
    *["(?=.*a)[a-z]{3,40}", "(?!.*the).{0,12}", r"(?:\b\w+\b ?){1,9}", "[^\\x00-\\x7f]{1,9}"],
]


@pytest.fixture(scope="module")
def pool() -> Pool:
    model = Store(default_home()).find("smollm2")
    if model is None:
        pytest.skip("needs `plait pull smollm2`")
    tokenizer = TextTokenizer(tokenizer_source(model.path))
    vocabulary = Vocabulary(
        tokenizer.token_bytes, tokenizer.eos_token_ids, len(tokenizer.token_bytes)
    )
    return Pool(vocabulary)


def check(pool: Pool, node: Node, seed: int, num_tokens: int) -> None:
    """Compare masks with stepping along a random walk."""
    vocabulary, rng = pool.vocabulary, random.Random(seed)
    with pool.using(IDLE):
        state: State | None = pool.pushdown.closure(pool.pushdown.push(node, None))
        for _ in range(num_tokens):
            assert state is not None
            found = ids(pool.mask(state, IDLE))
            expected = sorted(vocabulary.eos_ids) if state.is_accepting else []
            for token_id in vocabulary.ranked_ids.tolist():
                data = vocabulary.bytes_of(token_id)
                assert data is not None
                if pool.pushdown.advance(state, data) is not None:
                    expected.append(token_id)
            assert found == sorted(expected)
            texts = [i for i in found if i not in vocabulary.eos_ids]
            if not texts:
                return
            data = vocabulary.bytes_of(rng.choice(texts))
            assert data is not None
            state = pool.pushdown.advance(state, data)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_masks_of_regexes_equal_stepping_every_token(pattern: str, pool: Pool) -> None:
    check(pool, terminal(pattern, pool), seed=1, num_tokens=3)


@pytest.mark.parametrize("name", ["arrays", "brackets", "string"])
def test_masks_of_nodes_equal_stepping_every_token(name: str, pool: Pool) -> None:
    nodes: dict[str, Node] = {
        "arrays": arrays(pool),
        "brackets": brackets(pool),
        "string": pool.nodes.times(string(r"(?s)(?!.*\d).{0,20}", pool), 1, 90),
    }
    check(pool, nodes[name], seed=2, num_tokens=5)


def test_slices_split_the_vocabulary(pool: Pool) -> None:
    ranks = np.concatenate([part.ranks for part in pool.vocabulary.slices])
    assert np.array_equal(np.sort(ranks), np.arange(len(pool.vocabulary.ranked_ids)))
    assert len(pool.vocabulary.slices) == 3
