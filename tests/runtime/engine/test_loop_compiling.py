"""Grammars compile beside the engine: nobody waits for another's."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from plait.runtime import loop
from plait.runtime.admission import Gate
from plait.runtime.config import EngineConfig
from plait.runtime.grammar import disk, disk_vocabulary
from plait.runtime.grammar.spec import GrammarSpec
from plait.runtime.loop import EngineThread
from plait.runtime.model.scripted import scripted_model
from plait.runtime.sequence import Request

from .bench import GREEDY, ids
from .rig import REGEX, Inbox, Rig


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


@pytest.mark.parametrize(
    ("source", "code"),
    [("bad", "bad_grammar"), ("large", "grammar_budget"), ("bug", "internal")],
)
def test_a_grammar_that_fails_leaves_nothing_while_others_run(
    rig: Rig, source: str, code: str
) -> None:
    rig.ask("long", "long one")
    rig.ask("failing", grammar=replace(REGEX, source=(source,)))
    rig.grammars.gate.set()
    rig.ask("good", grammar=REGEX)
    assert rig.inbox.codes(3) == {"failing": code, "good": None, "long": None}
    assert len(rig.inbox.texts["long"]) == 1500
    rig.check_clean()


def test_a_real_grammar_over_its_time_fails_alone_and_soon() -> None:
    slow = GrammarSpec("regex", ("(?=[ab]*a[ab]{14}$)(?=[ab]*b[ab]{13}$)[ab]{30,40}c",))
    config = EngineConfig(grammar_timeout_s=0.02, grammar_max_states=10**9)
    thread, inbox = EngineThread(scripted_model(lambda _: "well"), config), Inbox()
    for name, grammar in (("slow", slow), ("again", slow), ("plain", None)):
        thread.submit(Request(name, ids("hello"), GREEDY, grammar), inbox)
    found = inbox.codes(3)
    thread.close()
    assert found == {"slow": "grammar_budget", "again": "grammar_budget", "plain": None}
    assert inbox.texts["plain"] == "well"


def test_a_request_cancelled_while_its_grammar_compiles_leaves_nothing(rig: Rig) -> None:
    rig.ask("cancelled", grammar=REGEX)
    rig.ask("kept", grammar=replace(REGEX, source=("kept",)))
    rig.thread.abort("cancelled")
    assert rig.inbox.codes(1) == {"cancelled": "cancelled"}
    rig.grammars.gate.set()
    assert rig.inbox.codes(1) == {"kept": None}
    assert rig.inbox.texts == {"cancelled": "", "kept": "kept"}
    rig.check_clean()


def test_a_request_cancelled_with_its_grammar_just_compiled_ends_once(rig: Rig) -> None:
    rig.grammars.gate.set()
    for i in range(50):
        rig.ask(f"r{i}", "long one", grammar=replace(REGEX, source=("x" * 60,)))
        rig.thread.abort(f"r{i}")
    assert set(rig.inbox.codes(50)) == {f"r{i}" for i in range(50)}
    rig.ask("after")
    assert rig.inbox.codes(1) == {"after": None}
    rig.check_clean()


def test_an_id_whose_grammar_compiles_is_taken(rig: Rig) -> None:
    rig.ask("a", grammar=REGEX)
    other = Inbox()
    rig.thread.submit(Request("a", ids("hello"), GREEDY), other)
    assert other.codes(1) == {"a": "duplicate_id"}
    rig.grammars.gate.set()
    assert rig.inbox.codes(1) == {"a": None}
    assert rig.inbox.texts["a"] == "yes"


def test_no_more_requests_wait_for_grammars_than_for_the_engine() -> None:
    rig = Rig(EngineConfig(max_waiting=2))
    for name in "abc":
        rig.ask(name, grammar=REGEX)
    assert rig.inbox.codes(1) == {"c": "queue_full"}
    rig.grammars.gate.set()
    assert rig.inbox.codes(2) == {"a": None, "b": None}
    rig.check_clean()
    rig.thread.close()


def test_a_request_that_fails_before_its_grammar_compiles_leaves_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(Gate, "constraint", broken)
        rig.ask("a", grammar=REGEX)
        assert rig.inbox.codes(1) == {"a": "internal"}
    rig.check_clean()
    rig.grammars.gate.set()
    rig.ask("a", grammar=REGEX)
    assert rig.inbox.codes(1) == {"a": None}
    assert rig.inbox.texts["a"] == "yes"


def answer_once(folder: Path, config: EngineConfig | None = None) -> None:
    """Answer one request under a grammar, with `folder` to keep it in, and close."""
    model, inbox = scripted_model(lambda _: "well"), Inbox()
    thread = EngineThread(model, config or EngineConfig(), grammar_folder=folder)
    thread.submit(Request("a", ids("hello"), GREEDY, GrammarSpec("regex", ("[^x]{4}",))), inbox)
    assert inbox.codes(1) == {"a": None}
    thread.close()
    assert inbox.texts["a"] == "well"


@pytest.mark.parametrize("is_kept", [True, False])
def test_an_engine_that_closes_has_kept_its_grammars_unless_told_not_to(
    is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_vocabulary, "MIN_TOKENS", 0)
    monkeypatch.setattr(disk, "LINGER_S", 60.0)  # only `close` is in a hurry
    answer_once(tmp_path, EngineConfig(is_grammar_cache_on_disk=is_kept))
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert (len(kept) > 1) == is_kept


def test_a_disk_that_is_slow_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write = threading.Event()
    write = disk.DiskCache._write

    def slowly(cache: disk.DiskCache, name: str, content: bytes) -> None:
        assert may_write.wait(10)
        write(cache, name, content)

    monkeypatch.setattr(disk_vocabulary, "MIN_TOKENS", 0)
    monkeypatch.setattr(loop, "CLOSE_S", 0.05)
    monkeypatch.setattr(disk.DiskCache, "_write", slowly)
    answer_once(tmp_path)
    assert not list(tmp_path.iterdir())
    may_write.set()
    for writer in threading.enumerate():
        if writer.name == "plait-grammar-disk":
            writer.join()


def test_a_stand_in_with_few_tokens_touches_no_disk(tmp_path: Path) -> None:
    answer_once(tmp_path)
    assert not list(tmp_path.iterdir())
