"""The stand-in model says what its script wants, and notices a wrong context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from plait.runtime.model.interface import ModelLimits
from plait.runtime.model.scripted import (
    IM_END,
    ByteTokenizer,
    Script,
    ScriptedRunner,
    scripted_model,
)
from plait.runtime.sequence import Batch


@dataclass(frozen=True)
class Spoken:
    output_start: int


def batch_of(
    tokens: Sequence[int],
    blocks: Sequence[int],
    *,
    block_size: int = 4,
    start: int = 0,
    output_start: int | None = None,
    copies: Sequence[tuple[int, int]] = (),
) -> Batch:
    places = np.arange(start, len(tokens))
    table = np.array(blocks)
    return Batch(
        token_ids=np.array(list(tokens), np.int32)[start:],
        positions=places.astype(np.int32),
        slot_mapping=(table[places // block_size] * block_size + places % block_size),
        cu_seqlens=np.array([0, len(places)], np.int32),
        seq_lens=np.array([len(tokens)], np.int32),
        block_tables=table[None].astype(np.int32),
        copy_from=np.array([a for a, _ in copies], np.int64),
        copy_to=np.array([b for _, b in copies], np.int64),
        logit_rows=np.array([len(places) - 1], np.int64),
        sequences=() if output_start is None else (Spoken(output_start),),
    )


def runner(script: Script, *, width: int = 259) -> ScriptedRunner:
    return ScriptedRunner(script, ModelLimits(64, 8, 4, width))


def softmax(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def test_the_peak_is_the_next_byte_of_what_the_script_wants() -> None:
    seen: list[str] = []

    def script(text: str) -> str:
        seen.append(text)
        return "xyz"

    logits = runner(script).run(batch_of(b"promptx", [3, 1], output_start=6))
    assert seen == ["prompt"]
    assert int(logits.argmax()) == ord("y")
    assert softmax(logits).max() == pytest.approx(0.9, abs=0.01)


def test_the_output_ends_after_what_the_script_wants() -> None:
    logits = runner(lambda _: "x").run(batch_of(b"promptx", [3, 1], output_start=6))
    assert int(logits.argmax()) == IM_END


def test_a_mapping_gives_the_probabilities_of_the_next_character() -> None:
    logits = runner(lambda _: {"a": 0.75, "": 0.25}).run(batch_of(b"pro", [0]))
    probabilities = softmax(logits)[0]
    assert probabilities[ord("a")] == pytest.approx(0.75, abs=1e-6)
    assert probabilities[IM_END] == pytest.approx(0.25, abs=1e-6)


def test_a_mapping_spells_wide_characters_byte_by_byte() -> None:
    def script(text: str) -> dict[str, float]:
        return {"é": 0.5, "è": 0.5} if text == "p" else {"": 1.0}

    some = runner(script)
    probabilities = softmax(some.run(batch_of(b"p", [0])))[0]
    assert probabilities["é".encode()[0]] == pytest.approx(1.0, abs=1e-6)
    context = b"p" + "é".encode()[:1]
    probabilities = softmax(some.run(batch_of(context, [0], output_start=1)))[0]
    assert probabilities["é".encode()[1]] == pytest.approx(0.5, abs=1e-6)


def test_a_read_of_an_unwritten_slot_is_noticed() -> None:
    with pytest.raises(RuntimeError, match="slot 0 for position 0"):
        runner(lambda _: "x").run(batch_of(b"abcdef", [0, 1], start=4))


def test_a_copied_block_reads_like_its_source() -> None:
    some = runner(lambda text: text[-1])
    some.run(batch_of(b"abc", [0]))
    copies = [(0, 4), (1, 5)]
    logits = some.run(batch_of(b"abz", [1], start=2, copies=copies))
    assert int(logits.argmax()) == ord("z")


def test_padded_rows_of_the_logits_always_win() -> None:
    logits = runner(lambda _: "x", width=320).run(batch_of(b"abc", [0]))
    assert int(logits.argmax()) >= 259


def test_control_tokens_never_come_from_text() -> None:
    assert max(ByteTokenizer().encode("<|im_end|>é")) < 256


def test_a_model_may_lack_a_template() -> None:
    assert scripted_model(lambda _: "", template=None).tokenizer.chat_template is None
