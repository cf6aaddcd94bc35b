"""Select in tokens: where choices begin when the tokenizer merges across the border."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from plait.interpreter.branch import BranchText, TextCodec
from plait.interpreter.selection import Selection, prepare
from plait.lang.ops import Select, SelectMethod
from plait.runtime.model.scripted import BOS, ByteTokenizer
from plait.runtime.sequence import Output, ScoreRequest


class MergingTokenizer(ByteTokenizer):
    """Bytes, and longer tokens that are taken wherever they fit, longest first."""

    def __init__(self, merges: Sequence[str], *, adds_bos: bool = False) -> None:
        super().__init__(adds_bos=adds_bos)
        self.merged = {text: 1000 + i for i, text in enumerate(merges)}

    def encode(self, text: str) -> list[int]:
        ids = []
        while text:
            fits = [merged for merged in self.merged if text.startswith(merged)]
            longest = max(fits, key=len, default="")
            ids.append(self.merged[longest] if longest else ord(text[0]))
            text = text[len(longest) or 1 :]
        return ids


def select(codec: TextCodec, text: str, *choices: str, method: SelectMethod = "sum") -> Selection:
    return prepare(Select("x", choices, method), BranchText().add(text), codec)


def scored(selection: Selection) -> list[tuple[list[int], int]]:
    request = selection.request("r")
    assert isinstance(request, ScoreRequest)
    return [(text.token_ids.tolist(), text.score_from) for text in request.texts]


def test_choices_are_scored_from_the_last_token_common_to_all() -> None:
    codec = TextCodec(MergingTokenizer(["cd", " yes"]))
    merged = select(codec, "abc", "de", "def")
    assert scored(merged) == [([97, 98, 1000, 101], 2), ([97, 98, 1000, 101, 102], 2)]
    spaced = select(codec, "A: ", "yes", "no")
    assert scored(spaced) == [([65, 58, 1001], 2), ([65, 58, 32, 110, 111], 2)]
    plain = select(codec, "A:", " yes", " no")
    assert scored(plain) == [([65, 58, 1001], 2), ([65, 58, 32, 110, 111], 2)]


def test_the_winners_joint_tokens_become_the_branchs_own() -> None:
    codec = TextCodec(MergingTokenizer(["cd"]))
    selection = select(codec, "abc", "de", "x")
    branch = selection.chosen(codec, 0)
    assert branch.pending is None
    assert branch.tokens is not None
    assert branch.tokens.all_ids().tolist() == [97, 98, 1000, 101]


def test_settled_tokens_are_never_tokenised_again() -> None:
    codec = TextCodec(MergingTokenizer(["cd"]))
    branch = codec.settle(BranchText().add("abc"))
    assert scored(prepare(Select("x", ("de", "e")), branch, codec)) == [
        ([97, 98, 99, 100, 101], 3),
        ([97, 98, 99, 101], 3),
    ]


def test_nothing_before_the_choices_starts_with_the_start_token() -> None:
    for adds_bos in (False, True):
        codec = TextCodec(MergingTokenizer([], adds_bos=adds_bos))
        assert scored(select(codec, "", "a", "b")) == [([BOS, 97], 1), ([BOS, 98], 1)]
    healed = select(TextCodec(MergingTokenizer(["ab"])), "a", "b", "c")
    assert scored(healed) == [([BOS, 1000], 1), ([BOS, 97, 99], 1)]


def test_an_empty_choice_needs_no_row_of_its_own() -> None:
    codec = TextCodec(ByteTokenizer())
    selection = select(codec, "a", "", "b")
    assert scored(selection) == [([97, 98], 1)]
    decision = selection.decide(Output("r", logprobs=((-0.1,),), finish_reason="stop"))
    assert decision.winner == 1
    alone = select(codec, "a", "")
    assert alone.request("r") is None
    assert alone.decide(None).probabilities == (1.0,)
    branch = select(codec, "", "").chosen(codec, 0)
    assert branch.tokens is not None
    assert branch.tokens.all_ids().tolist() == [BOS]


def test_unconditional_scores_the_choices_alone_in_the_same_request() -> None:
    codec = TextCodec(ByteTokenizer())
    selection = select(codec, "ab", "c", "", method="unconditional_likelihood_normalized")
    assert scored(selection) == [([97, 98, 99], 2), ([BOS, 99], 1)]
    answer = Output("r", logprobs=((-1.0,), (-3.0,)), finish_reason="stop")
    assert selection.decide(answer).scores[0] == pytest.approx(2.0)
