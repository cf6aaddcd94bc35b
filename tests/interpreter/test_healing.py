"""Token healing in programs: which texts are healed, and what branches go on from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from plait import State, assistant, function, gen, select, user
from plait.interpreter.backends.local import LocalBackend
from plait.interpreter.branch import BranchText, TextCodec
from plait.lang.errors import InvalidArgument
from plait.lang.ops import Gen, Op, RoleBegin, Sampling, Select, Source, Text, Value
from plait.runtime.config import EngineConfig
from plait.runtime.model.interface import Model, ModelLimits
from plait.runtime.model.scripted import CHATML, CONTROL_TOKENS, IM_END, ScriptedRunner
from plait.runtime.sequence import Int32, Request

from .bench import Bench, chain

WORDS = ["http", "://", "//", "80", "www", " yes", " no", "\n\n", "né", "née", ", ", "ab", "abc"]


class WordTokenizer:
    """Bytes, control tokens and WORDS; the longest that fits is taken."""

    chat_template = CHATML
    adds_bos = False
    bos_token_id = None
    eos_token_ids = frozenset((IM_END,))
    control_tokens: Mapping[str, int] = dict(CONTROL_TOKENS)

    def __init__(self) -> None:
        control: list[bytes | None] = [None] * len(CONTROL_TOKENS)
        words = [word.encode() for word in WORDS]
        self.token_bytes: Sequence[bytes | None] = (
            *(bytes((byte,)) for byte in range(256)),
            *control,
            *words,
        )
        self.vocab_size = len(self.token_bytes)
        self._ids = {data: i for i, data in enumerate(self.token_bytes) if data is not None}

    def encode(self, text: str) -> list[int]:
        data, found = text.encode(), []
        while data:
            size = next(n for n in range(min(len(data), 5), 0, -1) if data[:n] in self._ids)
            found.append(self._ids[data[:size]])
            data = data[size:]
        return found


TOKENIZER = WordTokenizer()
# What is said after a token, in tokens: as in a text that was tokenised as a whole.
AFTER = {
    "http": ["://", "www", "!"],
    ":": ["80"],
    "?": [" yes"],
    " ": ["!"],
    "\n": ["\n"],
    "n": ["née"],
    "80": ["!"],
}


class SaysNext(ScriptedRunner):
    """Says what follows the last token in AFTER, then the end."""

    def _logits(self, context: Int32, output_start: int) -> npt.NDArray[np.float32]:
        tokens = [(TOKENIZER.token_bytes[i] or b"").decode("utf-8", "replace") for i in context]
        logits = np.zeros(self.limits.logits_width, np.float32)
        logits[IM_END] = 5.0
        for last, said in AFTER.items():
            for i in range(len(said)):
                if tokens[-1 - i :] == [last, *said[:i]]:
                    logits[TOKENIZER.encode(said[i])] = 9.0
        return logits


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalBackend]:
    limits = ModelLimits(max_context=512, num_blocks=64, block_size=16, logits_width=300)
    model = Model("says", "says-1", TOKENIZER, SaysNext(lambda _: "", limits))
    opened = LocalBackend(model, EngineConfig())
    yield opened
    opened.close()


@function
def ask(s: State, text: str, heal: bool | None = None) -> None:
    s += text + gen("x", max_tokens=2, temperature=0, heal=heal)


def said(
    backend: LocalBackend, text: str, own: bool | None = None, run: bool | None = None
) -> object:
    return ask.options(backend=backend, heal=run).run(text, own)["x"]


def test_the_first_token_may_begin_in_the_text_before_it(backend: LocalBackend) -> None:
    assert said(backend, "see http:") == "//www"
    assert said(backend, "Right? ") == "yes"
    assert said(backend, "Right?") == " yes"


def test_a_gen_may_say_no_and_so_may_a_run(backend: LocalBackend) -> None:
    assert said(backend, "see http:", own=False) == "80!"
    assert said(backend, "see http:", run=False) == "80!"
    assert said(backend, "see http:", own=True, run=False) == "//www"
    assert said(backend, "see http:", own=False, run=True) == "80!"


@pytest.mark.parametrize("value", [1, "yes", 0])
def test_heal_is_true_or_false(value: object) -> None:
    with pytest.raises(InvalidArgument, match="heal="):
        gen("x", heal=value)  # type: ignore[arg-type]


def test_a_turns_begin_is_never_taken_back(backend: LocalBackend) -> None:
    @function
    def talk(s: State, opening: str) -> None:
        s += user("hi") + assistant(opening + gen("x", max_tokens=1, temperature=0))

    run = talk.options(backend=backend).run
    assert TOKENIZER.encode("\n\n") != TOKENIZER.encode("\n") * 2
    assert run("")["x"] == "\n"  # the token "\n" after the template's, not the end of "\n\n"
    assert run("http:")["x"] == "//"


def test_a_program_goes_on_from_the_healed_tokens(backend: LocalBackend) -> None:
    @function
    def twice(s: State) -> None:
        s += "http:" + gen("a", max_tokens=1, temperature=0)
        for branch in (forks := s.fork(2)):
            branch += gen("b", max_tokens=1, temperature=0)
        forks.join()
        s += gen("c", max_tokens=1, temperature=0)

    result = twice.options(backend=backend).run()
    # "www" comes after the one token "://" alone.
    assert (result["a"], result["b"], result["c"]) == ("//", ["www", "www"], "www")
    assert result.text() == "http://www"


def test_streams_and_batches_give_the_same(backend: LocalBackend) -> None:
    rows = [{"text": text} for text in ("see http:", "Right? ", "plain", "née", "x n")] * 3
    batch = [result["x"] for result in ask.options(backend=backend).run_batch(rows)]
    assert batch == [said(backend, row["text"]) for row in rows]
    for row in rows[:5]:
        with ask.options(backend=backend).stream(row["text"]) as stream:
            assert "".join(stream.text("x")) == said(backend, row["text"])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"regex": "//[a-z]+!"}, "//www!"),
        ({"regex": "//www"}, "//www"),
        ({"regex": "[0-9]+"}, "80"),
        ({"choices": ["80", "//"]}, "//"),
        ({"regex": "//[a-z]+", "stop": "w"}, "//"),
        ({"grammar": 'start: "//" /[a-z]+/'}, "//www"),
        ({"stop": ":"}, "//www!"),
        ({"stop": "/"}, ""),
    ],
)
def test_a_grammar_begins_after_the_text(
    backend: LocalBackend, options: dict[str, object], expected: str
) -> None:
    @function
    def link(s: State) -> None:
        s += "see http:" + gen("x", max_tokens=4, temperature=0, **options)  # type: ignore[arg-type]

    assert link.options(backend=backend).run()["x"] == expected


def test_a_select_after_it_is_as_ever(backend: LocalBackend) -> None:
    @function
    def choose(s: State) -> None:
        s += "see http:" + select("x", ["//www", "80"])

    assert choose.options(backend=backend).run()["x"] == "//www"


def heals(*ops: Op, defaults: Sampling | None = None) -> list[bool]:
    """Say which gens of a chain may heal; each says `ab`."""
    bench = Bench()
    bench.session.submit(chain(*ops))
    found = []
    for i, op in enumerate(ops):
        if isinstance(op, Gen):
            request = bench.engine.requests[f"run:{i}"]
            assert isinstance(request, Request)
            found.append(request.sampling.heal)
            bench.answer(i, "ab", **({"tail": "c"} if op.name == "cut" else {}))
            bench.run()
    return found


def test_only_what_the_program_wrote_is_healed() -> None:
    assert heals(Text("a"), Gen("x")) == [True]
    assert heals(Gen("x")) == [False]
    assert heals(Text("a"), Gen("x"), Gen("y")) == [True, False]
    assert heals(Text("a"), Gen("cut"), Gen("y")) == [True, False]
    assert heals(Text("a"), Gen("cut"), Text("b"), Gen("y")) == [True, True]
    assert heals(Text("a"), RoleBegin("user"), Gen("x")) == [False]
    assert heals(RoleBegin("user"), Text("a"), Gen("x")) == [True]
    assert heals(Text("a"), Gen("x"), Text("b"), Value(Source(1)), Gen("y")) == [True, True]
    assert heals(Text("a"), Gen("x", Sampling(heal=False))) == [False]


def test_a_choice_is_not_healed() -> None:
    bench = Bench()
    bench.session.submit(chain(Text("a"), Select("x", ("",)), Gen("y")))
    request = bench.engine.requests["run:2"]
    assert isinstance(request, Request)
    assert not request.sampling.heal


def test_the_token_must_lie_in_the_programs_text_as_a_whole() -> None:
    codec = TextCodec(TOKENIZER)
    (wide,) = TOKENIZER.encode("\n\n")
    template = codec.add_template(BranchText(), "user\n")
    assert not codec.may_heal(template, TOKENIZER.encode("\n")[0])
    assert not codec.may_heal(template.add("\n"), wide)
    assert codec.may_heal(template.add("\n").add("\n"), wide)
    assert codec.may_heal(BranchText().add("x\n").add("\n"), wide)
    assert not codec.may_heal(BranchText().add("x\n"), wide)
    assert codec.may_heal(BranchText().add("né"), 0xA9)
    assert not codec.may_heal(BranchText().add("x"), IM_END)


def test_healed_tokens_stand_in_place_of_the_prompts_last() -> None:
    bench = Bench()
    bench.session.submit(chain(Text("see:"), Gen("x"), Gen("y")))
    bench.answer(1, "//", token_ids=(1, 2), is_healed=True)
    bench.run()
    assert bench.engine.prompt("run:2") == [*b"see", 1, 2]
