"""An engine on its own thread, with a compiler that waits to be let."""

from __future__ import annotations

import queue
import threading

from plait.runtime.config import EngineConfig
from plait.runtime.errors import RequestError
from plait.runtime.grammar.spec import GrammarSpec
from plait.runtime.loop import EngineThread
from plait.runtime.model.scripted import scripted_model
from plait.runtime.sequence import Output, Request

from .bench import GREEDY, check_idle, ids
from .grammars import Fixed

REGEX = GrammarSpec("regex", ("yes",))


class SlowGrammars:
    """Compiles only once it is let to."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def compile(self, spec: GrammarSpec) -> Fixed:
        assert self.gate.wait(10)
        if spec.source == ("large",):
            raise RequestError("grammar_budget", "grammar too large")
        if spec.source == ("bad",):
            raise RequestError("bad_grammar", "no such regex")
        if spec.source == ("bug",):
            raise ZeroDivisionError
        return Fixed(spec.source[0])


class Inbox:
    """Collects outputs; `last` waits for the terminal one of an id."""

    def __init__(self) -> None:
        self.ends: queue.Queue[Output] = queue.Queue()
        self.texts: dict[str, str] = {}
        self.threads: set[str] = set()

    def __call__(self, output: Output) -> None:
        self.threads.add(threading.current_thread().name)
        self.texts[output.request_id] = self.texts.get(output.request_id, "") + output.text
        if output.finish_reason is not None:
            self.ends.put(output)

    def last(self) -> Output:
        return self.ends.get(timeout=5)

    def codes(self, count: int) -> dict[str, str | None]:
        """Wait for `count` ends; give the error code of each."""
        ends = [self.last() for _ in range(count)]
        return {last.request_id: last.error_code for last in ends}


class Rig:
    """The thread, its compiler and the outputs; `script` answers."""

    def __init__(self, config: EngineConfig | None = None) -> None:
        self.grammars = SlowGrammars()
        self.broken = False
        self.inbox = Inbox()
        model = scripted_model(self.script, num_blocks=256, max_context=2048)
        self.thread = EngineThread(model, config or EngineConfig(), self.grammars)

    def script(self, text: str) -> str:
        if self.broken:
            raise OSError("the device is gone")
        return "x" * 1500 if text.startswith("long") else "well"

    def ask(self, name: str, prompt: str = "hello", grammar: GrammarSpec | None = None) -> None:
        self.thread.submit(Request(name, ids(prompt), GREEDY, grammar), self.inbox)

    def check_clean(self) -> None:
        """Check that nothing of any request is left. Everything has ended: nothing steps now."""
        check_idle(self.thread._engine)
        assert [*self.thread._sinks, *self.thread._compiling] == []
        assert not self.thread._engine.has_work
        assert self.inbox.ends.empty()
