"""Chat and select on the default model, against its own tokenizer and its own numbers."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import tokenizers

from plait.interpreter.backend import Done, Failed, NodeEvent, SessionConfig
from plait.interpreter.executor import Executor
from plait.interpreter.mailbox import Mailbox
from plait.lang.graph import Node
from plait.lang.ops import Gen, Op, RoleBegin, RoleEnd, Sampling, Select, Text
from plait.runtime.config import EngineConfig
from plait.runtime.load.store import Store, default_home
from plait.runtime.loop import EngineThread
from plait.runtime.model.registry import load_model
from plait.runtime.sequence import Output, Request, ScoredText, ScoreRequest

pytestmark = pytest.mark.slow


class Bench:
    """An executor on the default model, with the requests that reach the engine."""

    def __init__(self) -> None:
        stored = Store(default_home()).find("smollm2")
        if stored is None:
            pytest.skip("needs `plait pull smollm2`")
        path, config = stored.path, EngineConfig()
        self.model = load_model(path, config)
        self.library = tokenizers.Tokenizer.from_file(os.fspath(path / "tokenizer.json"))
        self.requests: list[Request | ScoreRequest] = []
        self._engine = EngineThread(self.model, config)
        self._mailbox = Mailbox("executor", self._raise)
        self._executor = Executor(self, self._mailbox.post)
        self._ids = itertools.count()

    def submit(self, request: Request | ScoreRequest, sink: object) -> None:
        self.requests.append(request)
        self._engine.submit(request, sink)  # type: ignore[arg-type]

    def abort(self, request_id: str) -> None:
        self._engine.abort(request_id)

    def close(self) -> None:
        self._mailbox.close()
        self._engine.close()

    def results(self, *ops: Op) -> list[Done]:
        """Run a chain and give what each node gave."""
        nodes = [Node(i, op, i - 1 if i else None) for i, op in enumerate(ops)]
        ends: dict[int, Done] = {}
        done = threading.Event()

        def listen(events: Sequence[NodeEvent]) -> None:
            for event in events:
                assert not isinstance(event, Failed), event
                if isinstance(event, Done):
                    ends[event.node] = event
            if len(ends) == len(nodes):
                done.set()

        sampling = Sampling(temperature=0.0, max_tokens=8)
        config = SessionConfig(f"run-{next(self._ids)}", 1, sampling)
        session = self._executor.open(config, listen)
        self._mailbox.post(lambda: session.submit(nodes))
        assert done.wait(60)
        return [ends[i] for i in range(len(nodes))]

    def logprob(self, token_ids: Sequence[int]) -> float:
        """Give log P of all tokens but the first, token by token, each a request of its own."""
        return sum(
            self._score(np.asarray(token_ids[: i + 1], np.int32), i)
            for i in range(1, len(token_ids))
        )

    def _score(self, token_ids: np.ndarray[tuple[int], np.dtype[np.int32]], start: int) -> float:
        outputs: list[Output] = []
        done = threading.Event()

        def sink(output: Output) -> None:
            outputs.append(output)
            done.set()

        id = f"reference-{next(self._ids)}"
        self._engine.submit(ScoreRequest(id, (ScoredText(token_ids, start),)), sink)
        assert done.wait(60)
        return outputs[0].logprobs[0][0]

    @staticmethod
    def _raise(error: Exception) -> None:
        raise error


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


def test_a_talk_has_the_tokens_of_the_templates_own_rendering(bench: Bench) -> None:
    bench.requests.clear()
    *_, first, _, _, _, _, _, second = bench.results(
        RoleBegin("user"),
        Text("Name a colour. "),
        RoleEnd("user"),
        RoleBegin("assistant"),
        Gen("x"),
        RoleEnd("assistant"),
        RoleBegin("user"),
        Text("\nAnother one?"),
        RoleEnd("user"),
        RoleBegin("assistant"),
        Gen("y"),
    )
    before = (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\nName a colour. <|im_end|>\n<|im_start|>assistant\n"
    )
    after = "<|im_end|>\n<|im_start|>user\n\nAnother one?<|im_end|>\n<|im_start|>assistant\n"
    prompts = [r.prompt.tolist() for r in bench.requests if isinstance(r, Request)]
    expected = [before, before + first.text + after]
    assert prompts == [
        bench.library.encode(text, add_special_tokens=False).ids for text in expected
    ]
    assert second.text


@pytest.mark.parametrize(
    ("prompt", "choices"),
    [
        ("Is the sky blue? Answer:", (" yes", " no")),
        ("Is the sky blue? Answer: ", ("yes", "no")),
        ("The first letters are abc", ("de", "xyz", "d, e")),
        ("", ("Hello", "Goodbye", "zebra crossing")),
    ],
)
def test_select_scores_are_the_models_own(
    bench: Bench, prompt: str, choices: tuple[str, ...]
) -> None:
    encode = bench.model.tokenizer.encode
    rows = [encode(prompt), *(encode(prompt + choice) for choice in choices)]
    columns = zip(*rows, strict=False)
    border = sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, columns))
    # With nothing before it, a text starts from the model's start token.
    start = [] if border else [bench.model.tokenizer.bos_token_id or 0]
    done = bench.results(Text(prompt), Select("x", choices))[-1]
    shared = bench.logprob(start + rows[0][:border])
    for choice, row in zip(choices, rows[1:], strict=True):
        expected = bench.logprob(start + row) - shared
        assert done.meta.scores[choice] == pytest.approx(expected, abs=1e-4)
    assert done.text == max(choices, key=done.meta.scores.__getitem__)


def test_a_blank_before_the_border_changes_no_choice(bench: Bench) -> None:
    attached = bench.results(Text("The capital of Italy is"), Select("x", (" Rome", " Oslo")))[-1]
    apart = bench.results(Text("The capital of Italy is "), Select("x", ("Rome", "Oslo")))[-1]
    assert attached.text == " Rome"
    assert apart.text == "Rome"
    assert [*attached.meta.scores.values()] == pytest.approx(
        [*apart.meta.scores.values()], abs=1e-4
    )


def test_a_gen_after_a_select_sees_the_joint_tokens(bench: Bench) -> None:
    bench.requests.clear()
    results = bench.results(Text("The capital of Italy is "), Select("x", ("Rome", "Oslo")), Gen())
    request = bench.requests[-1]
    assert isinstance(request, Request)
    text = "The capital of Italy is " + results[1].text
    assert request.prompt.tolist() == bench.model.tokenizer.encode(text)
