"""Grammars compile beside the engine: nobody waits for another's."""

from __future__ import annotations

from dataclasses import replace

from .rig import REGEX, Rig


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
