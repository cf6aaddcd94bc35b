"""The engine's thread dies of a bug: every request has its end, and the owner is told."""

from __future__ import annotations

import threading

import pytest

from plait.runtime.config import EngineConfig
from plait.runtime.engine import Engine
from plait.runtime.errors import EngineDied
from plait.runtime.loop import EngineThread
from plait.runtime.model.scripted import scripted_model
from plait.runtime.sequence import Request

from .bench import GREEDY, ids
from .rig import REGEX, Inbox, Rig


def break_engine(*_: object) -> None:
    raise KeyError("a bug")


def test_what_is_live_or_compiling_ends_with_the_cause(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.ask("running", "long one")
    rig.ask("compiling", grammar=REGEX)
    monkeypatch.setattr(Engine, "fail_all", break_engine)
    monkeypatch.setattr(Engine, "step", break_engine)
    assert rig.inbox.codes(2) == {"running": "internal", "compiling": "internal"}


def test_what_comes_after_it_ends_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "fail_all", break_engine)
    monkeypatch.setattr(Engine, "step", break_engine)
    rig.ask("first")
    assert rig.inbox.last().error == "the engine died: KeyError: 'a bug'"
    for name in ("second", "third"):
        rig.ask(name)
        assert rig.inbox.last().error == "the engine died: KeyError: 'a bug'"
    rig.thread.abort("second")


def test_what_waits_behind_the_bug_in_the_queue_ends_too(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds, entered = threading.Event(), threading.Event()

    def break_slowly(*_: object) -> None:
        entered.set()
        assert holds.wait(5)
        raise KeyError("a bug")

    monkeypatch.setattr(Engine, "abort", break_slowly)
    rig.thread.abort("nothing")
    assert entered.wait(5)
    rig.ask("a")
    rig.thread.abort("a")
    rig.ask("b")
    holds.set()
    assert rig.inbox.codes(2) == {"a": "internal", "b": "internal"}


def test_the_owner_is_told_once_and_after_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[EngineDied, int]] = []
    has_told = threading.Event()
    inbox = Inbox()

    def on_death(error: EngineDied) -> None:
        told.append((error, inbox.ends.qsize()))
        has_told.set()

    monkeypatch.setattr(Engine, "abort", break_engine)
    model = scripted_model(lambda text: "x" * 1500)
    thread = EngineThread(model, EngineConfig(), on_death=on_death)
    thread.submit(Request("a", ids("hello"), GREEDY), inbox)
    thread.abort("a")
    assert has_told.wait(5)
    thread.close()
    ((error, num_ended),) = told
    assert num_ended == 1
    assert isinstance(error.__cause__, KeyError)


def test_a_close_is_no_death() -> None:
    told: list[EngineDied] = []
    thread = EngineThread(scripted_model(lambda text: "ok"), EngineConfig(), on_death=told.append)
    thread.close()
    assert told == []
