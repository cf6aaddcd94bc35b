"""A client that leaves while its grammar compiles takes nothing with it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from plait.interpreter.backend import Done, Failed, NodeEvent, SessionConfig
from plait.interpreter.executor import Executor, ExecutorSession
from plait.interpreter.mailbox import Mailbox
from plait.lang.graph import Node
from plait.lang.ops import Constraint, Gen, Sampling, Text
from plait.runtime.config import EngineConfig
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.spec import CompiledGrammar, GrammarSpec
from plait.runtime.grammar.vocabulary import Vocabulary
from plait.runtime.loop import EngineThread
from plait.runtime.model.scripted import scripted_model


class GatedGrammars:
    """The real compiler behind a gate."""

    def __init__(self, inner: GrammarCompiler) -> None:
        self.gate = threading.Event()
        self.has_begun = threading.Event()
        self._inner = inner

    def compile(self, spec: GrammarSpec) -> CompiledGrammar:
        self.has_begun.set()
        assert self.gate.wait(10)
        return self._inner.compile(spec)


class Bench:
    """An executor over an engine whose grammars compile once they are let to."""

    def __init__(self) -> None:
        model = scripted_model(lambda _: "yes")
        tokenizer, width = model.tokenizer, model.runner.limits.logits_width
        vocabulary = Vocabulary(tokenizer.token_bytes, tokenizer.eos_token_ids, width)
        self.grammars = GatedGrammars(GrammarCompiler(vocabulary, 2.0, 50_000))
        self.engine = EngineThread(model, EngineConfig(), self.grammars)
        self.mailbox = Mailbox("executor", self._raise)
        self._executor = Executor(self.engine, self.mailbox.post)
        self.ends: queue.Queue[Done | Failed] = queue.Queue()

    def start(self, name: str, gen: Gen, listen: Callable[..., None]) -> ExecutorSession:
        config = SessionConfig(name, 1, Sampling(temperature=0.0, max_tokens=8))
        session = self._executor.open(config, listen)
        nodes = [Node(0, Text("hello"), None), Node(1, gen, 0)]
        self.mailbox.post(lambda: session.submit(nodes))
        return session

    def listen(self, events: Sequence[NodeEvent]) -> None:
        for event in events:
            if isinstance(event, Done | Failed) and event.node == 1:
                self.ends.put(event)

    @staticmethod
    def _raise(error: Exception) -> None:
        raise error


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.grammars.gate.set()
    bench.mailbox.close()
    bench.engine.close()


def test_a_client_that_leaves_while_its_grammar_compiles_harms_no_other(bench: Bench) -> None:
    heard: list[NodeEvent] = []
    left = bench.start("left", Gen("x", constraint=Constraint(regex="[a-z]{1,9}")), heard.extend)
    assert bench.grammars.has_begun.wait(5)
    bench.mailbox.post(left.close)
    bench.start("plain", Gen("x"), bench.listen)
    assert isinstance(bench.ends.get(timeout=5), Done)  # while the grammar is not ready yet
    bench.grammars.gate.set()
    bench.start("after", Gen("x", constraint=Constraint(regex="yes|no")), bench.listen)
    last = bench.ends.get(timeout=5)
    assert isinstance(last, Done)
    assert last.text == "yes"
    stats = bench.engine.stats()
    assert (
        stats.num_running,
        stats.num_waiting,
        stats.num_held_blocks,
        stats.num_locked_blocks,
    ) == (0, 0, 0, 0)
    assert stats.num_finished == 2
    assert not any(isinstance(event, Done) and event.node == 1 for event in heard)
