"""The engine's thread: every request gets its end, and nobody waits for another's grammar."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from plait.runtime.config import EngineConfig
from plait.runtime.errors import RequestError
from plait.runtime.grammar.spec import Bitmask, GrammarSpec
from plait.runtime.loop import EngineThread
from plait.runtime.model.scripted import IM_END, scripted_model
from plait.runtime.sequence import Int32, Output, Request, SamplingParams

GREEDY = SamplingParams(temperature=0.0)
REGEX = GrammarSpec("regex", ("yes",))


def ids(text: str) -> Int32:
    return np.frombuffer(text.encode(), np.uint8).astype(np.int32)


class Fixed:
    """A grammar of one text."""

    size_bytes = 0

    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at

    def matcher(self) -> Fixed:
        return Fixed(self.text)

    def fork(self) -> Fixed:
        return Fixed(self.text, self.at)

    def fill_bitmask(self, row: Bitmask) -> None:
        row[:] = 0
        token_id = IM_END if self.is_accepting else ord(self.text[self.at])
        row.view(np.uint32)[token_id // 32] |= np.uint32(1 << token_id % 32)

    def accept(self, token_id: int) -> bool:
        self.at += 1
        return True

    def rollback(self, num_tokens: int) -> None:
        self.at -= num_tokens

    @property
    def is_accepting(self) -> bool:
        return self.at == len(self.text)

    @property
    def is_finished(self) -> bool:
        return self.is_accepting

    def forced(self) -> bytes:
        return self.text[self.at :].encode()


class SlowGrammars:
    """Compiles only once it is let to."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def compile(self, spec: GrammarSpec) -> Fixed:
        assert self.gate.wait(10)
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


class Rig:
    def __init__(self) -> None:
        self.grammars = SlowGrammars()
        self.broken = False
        self.inbox = Inbox()
        model = scripted_model(self.script, num_blocks=256, max_context=2048)
        self.thread = EngineThread(model, EngineConfig(), self.grammars)

    def script(self, text: str) -> str:
        if self.broken:
            raise OSError("the device is gone")
        return "x" * 1500 if text.startswith("long") else "well"

    def ask(self, name: str, prompt: str = "hello", grammar: GrammarSpec | None = None) -> None:
        self.thread.submit(Request(name, ids(prompt), GREEDY, grammar), self.inbox)


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.grammars.gate.set()
    rig.thread.close()


def test_outputs_come_on_the_engines_thread(rig: Rig) -> None:
    rig.ask("a")
    assert rig.inbox.last().finish_reason == "stop"
    assert rig.inbox.texts == {"a": "well"}
    assert rig.inbox.threads == {"plait-engine"}


def test_a_bad_request_gets_one_terminal_output(rig: Rig) -> None:
    rig.ask("a", "")
    rig.ask("b", "x" * 5000)
    assert rig.inbox.last().error_code == "empty_prompt"
    assert rig.inbox.last().error_code == "context_exceeded"


def test_a_duplicate_gets_its_own_refusal(rig: Rig) -> None:
    rig.ask("a", "long one")
    other = Inbox()
    rig.thread.submit(Request("a", ids("hello"), GREEDY), other)
    assert other.last().error_code == "duplicate_id"
    rig.thread.abort("a")
    assert rig.inbox.last().finish_reason == "cancelled"


# K09
def test_a_slow_grammar_holds_up_nobody(rig: Rig) -> None:
    rig.ask("slow", grammar=REGEX)
    for i in range(5):
        rig.ask(f"plain{i}")
    assert {rig.inbox.last().request_id for _ in range(5)} == {f"plain{i}" for i in range(5)}
    rig.grammars.gate.set()
    assert rig.inbox.last().request_id == "slow"
    assert rig.inbox.texts["slow"] == "yes"


# K11
def test_a_request_can_be_cancelled_while_its_grammar_compiles(rig: Rig) -> None:
    rig.ask("a", grammar=REGEX)
    rig.thread.abort("a")
    rig.thread.abort("a")
    assert rig.inbox.last().finish_reason == "cancelled"
    rig.ask("a", grammar=replace(REGEX, source=("no",)))
    rig.grammars.gate.set()
    assert rig.inbox.last().finish_reason == "stop"
    assert rig.inbox.texts["a"] == "no"
    assert rig.inbox.ends.empty()


def test_a_bad_grammar_fails_its_own_request(rig: Rig) -> None:
    rig.grammars.gate.set()
    rig.ask("bad", grammar=replace(REGEX, source=("bad",)))
    rig.ask("bug", grammar=replace(REGEX, source=("bug",)))
    rig.ask("good", grammar=REGEX)
    found = {last.request_id: last.error_code for last in (rig.inbox.last() for _ in range(3))}
    assert found == {"bad": "bad_grammar", "bug": "internal", "good": None}


def test_a_prompt_too_long_is_refused_before_its_grammar_compiles(rig: Rig) -> None:
    rig.ask("a", "x" * 5000, grammar=REGEX)
    assert rig.inbox.last().error_code == "context_exceeded"


def test_a_failing_model_does_not_stop_the_thread(rig: Rig) -> None:
    rig.broken = True
    rig.ask("a")
    assert rig.inbox.last().error_code == "internal"
    rig.broken = False
    rig.ask("b")
    assert rig.inbox.last().finish_reason == "stop"


def test_a_bug_in_a_step_fails_what_is_live_and_goes_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit(*_: object) -> None:
        raise KeyError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr("plait.runtime.scheduler.Scheduler.commit", commit)
        rig.ask("a")
        assert rig.inbox.last().error_code == "internal"
    rig.ask("b")
    assert rig.inbox.last().finish_reason == "stop"
    assert rig.thread.num_faults == 1


def test_a_sink_that_raises_harms_no_other(rig: Rig) -> None:
    def bad_sink(_: Output) -> None:
        raise RuntimeError("not my day")

    rig.thread.submit(Request("bad", ids("hello"), GREEDY), bad_sink)
    rig.ask("good")
    assert rig.inbox.last().request_id == "good"


def test_blocks_that_were_lost_are_found_while_idle(rig: Rig) -> None:
    rig.ask("a")
    rig.inbox.last()
    rig.thread._engine._pool.allocate(3)
    rig.thread.abort("wakes the loop")
    deadline = time.monotonic() + 5
    while rig.thread.stats().repairs == 0:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert rig.thread.stats().free_blocks == 256
    rig.ask("b")
    assert rig.inbox.last().finish_reason == "stop"


def test_close_cancels_what_is_live(rig: Rig) -> None:
    rig.ask("running", "long one")
    rig.ask("compiling", grammar=REGEX)
    start = time.monotonic()
    rig.thread.close()
    rig.thread.close()
    assert time.monotonic() - start < 1
    found = {last.request_id: last.finish_reason for last in (rig.inbox.last() for _ in range(2))}
    assert found == {"running": "cancelled", "compiling": "cancelled"}
    rig.ask("late")
    assert rig.inbox.last().error_code == "cancelled"
    assert rig.inbox.ends.empty()


def test_many_submitters_each_get_their_answers(rig: Rig) -> None:
    def submit(start: int) -> None:
        for i in range(start, start + 50):
            rig.ask(f"r{i}", f"prompt {i}")

    threads = [threading.Thread(target=submit, args=(50 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    found = {rig.inbox.last().request_id for _ in range(200)}
    for thread in threads:
        thread.join()
    assert len(found) == 200
    assert set(rig.inbox.texts.values()) == {"well"}
