"""Draws of a step: with the largest logits known, and without."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from plait.kernels.sampling import NOT_FINITE
from plait.runtime.drawing import Draw, Drawer, Prepared
from plait.runtime.errors import RequestError
from plait.runtime.generation import Generation
from plait.runtime.job import Job
from plait.runtime.model.scripted import ByteTokenizer
from plait.runtime.sample import SampleRow
from plait.runtime.sequence import SamplingParams

TOKENIZER = ByteTokenizer()
WIDTH = TOKENIZER.vocab_size + 7  # rows without a token at the end
GREEDY, WILD = SamplingParams(temperature=0), SamplingParams()
END = min(TOKENIZER.eos_token_ids)


def draws(num: int) -> list[Draw]:
    nothing = cast(Job, None), cast(Generation, None)
    return [Draw(*nothing, row=row, position=0) for row in range(num)]


def row(params: SamplingParams = GREEDY, allowed: list[int] | None = None) -> SampleRow:
    mask = None
    if allowed is not None:
        bits = np.zeros(-(-WIDTH // 32) * 32, np.uint8)
        bits[allowed] = 1
        mask = np.packbits(bits, bitorder="little").view(np.int32)
    return SampleRow(params, seed=1, position=3, mask=mask, forbid_eos=allowed is None)


ROWS: list[Prepared] = [
    row(),
    row(WILD),
    row(allowed=[5, 31, 63, 97]),
    row(allowed=[]),
    RequestError("internal", "no mask"),
    SampleRow(GREEDY, seed=1, position=3),
]


@pytest.mark.parametrize("largest", [5, 31, 63, 64, END, WIDTH - 1, NOT_FINITE])
def test_the_known_largest_change_no_draw(largest: int) -> None:
    logits = np.random.default_rng(0).normal(size=(len(ROWS), WIDTH)).astype(np.float32)
    logits[:, largest] = 9 if largest >= 0 else np.nan
    drawer, asked = Drawer(TOKENIZER), draws(len(ROWS))
    wanted = drawer.draw(asked, ROWS, logits, ())
    assert [str(each) for each in wanted] == [
        str(each) for each in drawer.draw(asked, ROWS, logits, [largest] * len(ROWS))
    ]


def test_a_greedy_draw_of_a_known_largest_looks_at_no_logits() -> None:
    poison = np.full((2, WIDTH), np.nan, np.float32)
    rows = [row(), row(allowed=[63])]
    assert Drawer(TOKENIZER).draw(draws(2), rows, poison, [5, 63]) == [5, 63]
