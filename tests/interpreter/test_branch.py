"""Branch text: what merges, what settles, and how a text starts."""

from __future__ import annotations

import pytest

from plait.interpreter.branch import BranchText, TextCodec
from plait.runtime.errors import RequestError
from plait.runtime.model.scripted import BOS, IM_END, IM_START, ByteTokenizer


class Spy(ByteTokenizer):
    """Keeps the texts that were tokenised."""

    def __init__(self, *, adds_bos: bool = False) -> None:
        super().__init__(adds_bos=adds_bos)
        self.texts: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.texts.append(text)
        return super().encode(text)


def ids(branch: BranchText) -> list[int]:
    return branch.tokens.all_ids().tolist() if branch.tokens is not None else []


def test_adjacent_texts_are_tokenised_as_one() -> None:
    tokenizer = Spy()
    branch = BranchText().add("Hel").add("").add("lo")
    assert ids(TextCodec(tokenizer).settle(branch)) == list(b"Hello")
    assert tokenizer.texts == ["Hello"]


def test_a_templates_plain_text_merges_with_its_neighbours() -> None:
    tokenizer = Spy()
    codec = TextCodec(tokenizer)
    branch = codec.add_template(BranchText().add("A"), "b<|im_start|>user\n").add("Hello")
    branch = codec.settle(codec.add_template(branch, "!<|im_end|>\n"))
    assert tokenizer.texts == ["Ab", "user\nHello!", "\n"]
    assert ids(branch) == [*b"Ab", IM_START, *b"user\nHello!", IM_END, *b"\n"]


def test_a_fork_shares_what_came_before_and_tokenises_nothing() -> None:
    tokenizer = Spy()
    codec = TextCodec(tokenizer)
    stem = BranchText().add("Once ")
    left, right = codec.settle(stem.add("upon")), codec.settle(stem.add("more"))
    assert tokenizer.texts == ["Once upon", "Once more"]
    assert (ids(left), ids(right)) == (list(b"Once upon"), list(b"Once more"))
    assert stem.pending_text() == "Once "


def test_bos_comes_first_and_once() -> None:
    codec = TextCodec(Spy(adds_bos=True))
    branch = codec.settle(BranchText().add("a"))
    assert ids(codec.settle(branch.add("b"))) == [BOS, *b"ab"]
    assert ids(codec.settle(codec.add_template(BranchText(), "<|bos|>a"))) == [BOS, *b"a"]
    assert ids(codec.settle(codec.add_template(BranchText(), "<|im_end|>"))) == [BOS, IM_END]
    assert ids(codec.settle_prompt(BranchText())) == [BOS]


def test_an_empty_prompt_starts_with_bos_else_an_end_token() -> None:
    tokenizer = Spy()
    assert ids(TextCodec(tokenizer).settle_prompt(BranchText())) == [BOS]
    tokenizer.bos_token_id = None
    assert ids(TextCodec(tokenizer).settle_prompt(BranchText())) == [IM_END]
    tokenizer.eos_token_ids = frozenset()
    with pytest.raises(RequestError, match="no text to go on from") as caught:
        TextCodec(tokenizer).settle_prompt(BranchText())
    assert caught.value.code == "empty_prompt"


def test_a_long_chain_of_texts_and_tokens_is_walked_without_recursion() -> None:
    codec = TextCodec(Spy())
    branch = BranchText()
    for _ in range(20_000):
        branch = codec.settle(branch.add("a").add("b"), [IM_END])
    assert len(ids(branch)) == 60_000
    for _ in range(20_000):
        branch = branch.add("c")
    assert branch.pending_text() == "c" * 20_000
