"""Tokenising in pieces gives what tokenising the whole text gives."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, pre_tokenizers, trainers

from plait.interpreter import encoding
from plait.interpreter.encoding import TextEncoder
from plait.runtime.load.store import Store, default_home
from plait.runtime.model.scripted import ByteTokenizer
from plait.runtime.model.tokenizer import load_tokenizer

WORDS = ["a", "word", "Words,", "it's", "1234", "é", "ﬁ", "한국어", "(x)", "#!", "a_b", "'", "…"]
GAPS = [" ", " ", " ", "  ", "\n", " \n", "\n\n", "\t", "\u00a0"]
ROOT = Path(__file__).parents[2]


class TrainedTokenizer(ByteTokenizer):
    """A small byte-level BPE, trained on this repository's own prose."""

    def __init__(self) -> None:
        super().__init__()
        self._library = Library(models.BPE())
        self._library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self._library.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=600, initial_alphabet=alphabet, show_progress=False
        )
        text = Path(__file__).read_text(encoding="utf-8")
        self._library.train_from_iterator([text * 3, " ".join(WORDS) * 9], trainer)
        size = self._library.get_vocab_size()
        self.token_bytes = [self._library.decode([i]).encode() for i in range(size)]
        self.texts: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.texts.append(text)
        ids: list[int] = self._library.encode(text).ids
        return ids


@pytest.fixture(scope="module")
def tokenizer() -> TrainedTokenizer:
    return TrainedTokenizer()


@settings(derandomize=True, max_examples=60, deadline=None)
@given(data=st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=500))
def test_pieces_put_together_are_the_whole(
    tokenizer: TrainedTokenizer, data: list[tuple[str, str]]
) -> None:
    text = "".join(word + gap for word, gap in data)
    assert TextEncoder(tokenizer).encode(text).tolist() == tokenizer.encode(text)


def test_texts_with_the_same_start_are_tokenised_once(tokenizer: TrainedTokenizer) -> None:
    encoder = TextEncoder(tokenizer)
    start = "some words in a row " * 500
    encoder.encode(start + "one")
    tokenizer.texts.clear()
    encoder.encode(start + "two")
    assert sum(map(len, tokenizer.texts)) < 1200


def test_a_vocabulary_with_tokens_over_two_words_is_not_cut() -> None:
    tokenizer = TrainedTokenizer()
    tokenizer.token_bytes = [*tokenizer.token_bytes, b"of the"]
    tokenizer.texts.clear()
    TextEncoder(tokenizer).encode("of the " * 1000)
    assert len(tokenizer.texts) == 1


@pytest.mark.parametrize("piece_len", [3, 3000])
def test_what_is_kept_of_many_texts_is_bounded(
    tokenizer: TrainedTokenizer, monkeypatch: pytest.MonkeyPatch, piece_len: int
) -> None:
    monkeypatch.setattr(encoding, "_MAX_BYTES", 50_000)
    encoder = TextEncoder(tokenizer)
    texts = [f"{i}".zfill(piece_len) for i in range(200)]  # no blank, so that none is cut
    gc.collect()
    tracemalloc.start()
    try:
        for text in texts:
            encoder.encode(text)
        tokenizer.texts.clear()
        gc.collect()
        num_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert num_bytes < 60_000
    encoder.encode(texts[-1])
    assert tokenizer.texts == [], "what was asked for last is kept"
    encoder.encode(texts[0])
    assert tokenizer.texts == [texts[0]]


def test_a_text_of_more_than_is_kept_is_not_kept(
    tokenizer: TrainedTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "_MAX_BYTES", 1000)
    encoder = TextEncoder(tokenizer)
    encoder.encode("short")
    assert encoder.encode("x" * 2000).tolist() == tokenizer.encode("x" * 2000)
    tokenizer.texts.clear()
    encoder.encode("short")
    assert tokenizer.texts == []


@pytest.mark.slow
def test_pieces_put_together_are_the_whole_on_the_default_model() -> None:
    stored = Store(default_home()).find("smollm2")
    if stored is None:
        pytest.skip("needs `plait pull smollm2`")
    tokenizer = load_tokenizer(stored.path)
    encoder = TextEncoder(tokenizer)
    for path in [*ROOT.glob("*.md"), *ROOT.glob("tests/interpreter/*.py")]:
        text = path.read_text(encoding="utf-8")
        assert encoder.encode(text).tolist() == tokenizer.encode(text)
    assert encoder.encode("word " * 9000).tolist() == tokenizer.encode("word " * 9000)
