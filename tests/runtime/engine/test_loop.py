"""The engine's thread: every request gets its end, whatever happens to the others."""

from __future__ import annotations

import threading
import time

import pytest

from plait.runtime.sequence import Output, Request

from .bench import GREEDY, ids
from .rig import REGEX, Inbox, Rig


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
    while rig.thread.stats().num_repairs == 0:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert rig.thread.stats().num_free_blocks == 256
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
