"""The trie of the tokens, and bitmasks at the borders of their words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.grammar.bits import mask_len, pack_ids, set_bits
from plait.runtime.grammar.vocabulary import Vocabulary


def ids(mask: np.ndarray[tuple[int, ...], np.dtype[np.int32]]) -> list[int]:
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()


@pytest.mark.parametrize("width", [1, 31, 32, 33, 256, 257, 288])
def test_masks_have_a_bit_for_each_id_of_the_width_and_no_more(width: int) -> None:
    vocabulary = Vocabulary([bytes((i % 256,)) for i in range(300)], (0, 299, -1), width)
    assert vocabulary.eos_ids == {i for i in (0, 299) if i < width}
    num_tokens = len(vocabulary.ranked_ids)
    everything = vocabulary.pack(np.ones(num_tokens, np.bool_))
    assert everything.shape == (vocabulary.mask_len,) == (-(-width // 32),)
    assert everything.dtype == np.int32
    assert ids(everything) == list(range(1, min(width, 299)))
    assert ids(vocabulary.pack(np.zeros(num_tokens, np.bool_))) == []


@pytest.mark.parametrize("width", [1, 31, 32, 33, 300])
def test_ids_are_packed_as_they_are_set_one_by_one(width: int) -> None:
    for chosen in ([], [0], list(range(0, width, 3)), list(range(width))):
        row = np.zeros(mask_len(width), np.int32)
        for token_id in chosen:
            set_bits(row, [token_id])
        assert np.array_equal(pack_ids(np.array(chosen, np.int32), width), row)
        assert ids(row) == chosen


def test_control_tokens_empty_tokens_and_end_tokens_are_no_text() -> None:
    vocabulary = Vocabulary([b"a", None, b"", b"b"], (3,), 10)
    assert [vocabulary.bytes_of(i) for i in range(-1, 6)] == [None, b"a", *[None] * 5]
    assert vocabulary.spellable == {ord("a")}


def test_a_vocabulary_without_text_is_legal() -> None:
    vocabulary = Vocabulary([None], (0,), 1)
    assert (vocabulary.longest, len(vocabulary.trie.byte)) == (0, 1)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=40))
def test_the_trie_holds_each_prefix_once_with_its_tokens_and_bytes(tokens: list[bytes]) -> None:
    vocabulary = Vocabulary(tokens, (), len(tokens))
    trie = vocabulary.trie
    ranked = [tokens[i] for i in vocabulary.ranked_ids]
    prefixes = {token[:n] for token in tokens for n in range(len(token) + 1)}
    seen: set[bytes] = set()
    stack = [(0, b"")]
    while stack:
        node, prefix = stack.pop()
        seen.add(prefix)
        low, own, high = trie.low[node], trie.own[node], trie.high[node]
        assert ranked[low:own] == [t for t in ranked if t == prefix]
        assert ranked[low:high] == [t for t in ranked if t.startswith(prefix)]
        after = {b for t in ranked[low:high] for b in t[len(prefix) :]}
        bits = np.unpackbits(trie.below[node].view(np.uint8), bitorder="little")
        assert set(np.flatnonzero(bits).tolist()) == after
        first = int(trie.first_child[node])
        for child in range(first, first + int(trie.num_children[node])):
            stack.append((child, prefix + bytes((int(trie.byte[child]),))))
    assert seen == prefixes
    assert len(trie.byte) == len(prefixes)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=40))
def test_slices_hold_each_token_once_and_know_their_places(tokens: list[bytes]) -> None:
    vocabulary = Vocabulary(tokens, (), len(tokens))
    ranked = [tokens[i] for i in vocabulary.ranked_ids]
    assert sorted(np.concatenate([part.ranks for part in vocabulary.slices])) == [
        *range(len(tokens))
    ]
    shortest = 0
    for part in vocabulary.slices:
        held = [ranked[rank] for rank in part.ranks]
        assert all(shortest < len(token) <= part.longest for token in held)
        shortest = part.longest
        whole = vocabulary.trie
        for node in range(len(part.trie.byte)):
            inside = part.ranks[part.trie.low[node] : part.trie.high[node]]
            place = part.nodes[node]
            assert all(whole.low[place] <= rank < whole.high[place] for rank in inside)
            assert node == 0 or part.trie.byte[node] == whole.byte[place]
        flags = np.ones(len(held), np.bool_)
        expected = sorted(vocabulary.ranked_ids[part.ranks].tolist())
        assert ids(vocabulary.pack_slice(part, flags)) == expected
