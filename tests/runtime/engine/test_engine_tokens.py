"""Which tokens may be drawn, and which of them end an output: C06 and M11."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plait.runtime.config import EngineConfig
from plait.runtime.engine import Engine
from plait.runtime.model.interface import Model
from plait.runtime.model.scripted import IM_END, ByteTokenizer, scripted_model
from plait.runtime.sequence import (
    Request,
    SamplingParams,
)

from .bench import GREEDY, ask, drain, make


# C06
def test_ids_without_a_token_are_never_drawn() -> None:
    for sampling in (GREEDY, SamplingParams(temperature=5.0, max_tokens=50, ignore_eos=True)):
        engine = make(width=320)
        result = drain(engine, ask("a", "hello", sampling))["a"]
        assert result.last.finish_reason in ("stop", "length")
        assert max(result.last.token_ids) < 259


class Holey(ByteTokenizer):
    """Has ids without a token, and more than one token that ends."""

    def __init__(self) -> None:
        super().__init__()
        self.token_bytes = tuple(
            None if i == ord("o") else b for i, b in enumerate(self.token_bytes)
        )
        self.eos_token_ids = frozenset((IM_END, ord("!")))


def holey() -> Engine:
    model = scripted_model(lambda text: text[-5:])
    return Engine(Model("holey", "holey", Holey(), model.runner), EngineConfig())


def test_holes_in_the_vocabulary_are_never_drawn() -> None:
    assert ord("o") not in drain(holey(), ask("a", "hello"))["a"].last.token_ids


# M11
def test_any_end_token_ends_and_is_not_shown() -> None:
    result = drain(holey(), ask("a", "ab!cd"))["a"]
    assert (result.text, result.last.finish_reason) == ("ab", "stop")


def test_an_end_token_at_once_is_a_legal_output() -> None:
    result = drain(make(lambda _: ""), ask("a", "hello"))["a"]
    assert (result.text, result.last.token_ids, result.last.finish_reason) == ("", (), "stop")


def test_min_tokens_masks_every_end_token() -> None:
    sampling = replace(GREEDY, min_tokens=5, max_tokens=9)
    result = drain(holey(), ask("a", "!!!!!", sampling))["a"]
    assert len(result.last.token_ids) == 5
    assert result.last.finish_reason == "stop"
    assert not {IM_END, ord("!")} & set(result.last.token_ids)


def test_ignore_eos_goes_on_to_max_tokens() -> None:
    sampling = replace(GREEDY, ignore_eos=True, max_tokens=12)
    result = drain(make(lambda _: "abc"), ask("a", "hello", sampling))["a"]
    assert (len(result.last.token_ids), result.last.finish_reason) == (12, "length")
    assert result.text.startswith("abc")


def test_an_end_token_in_the_prompt_is_a_token_like_others() -> None:
    prompt = np.array([104, IM_END, 105], np.int32)
    assert drain(make(), Request("a", prompt, GREEDY))["a"].text == "you said h<|im_end|>i"
