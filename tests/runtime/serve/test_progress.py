"""A step counter that stands still while answers are owed."""

from __future__ import annotations

import logging

import pytest

from plait.runtime.serve.progress import WARN_S, Progress


def test_an_engine_that_stands_still_is_logged_once_and_then_wrong(
    caplog: pytest.LogCaptureFixture,
) -> None:
    progress = Progress(stuck_s=100)
    with caplog.at_level(logging.WARNING, "plait.serve"):
        found = [progress.check(7, 2, now_s) for now_s in range(0, 100, 10)]
    assert found == [""] * 10
    (record,) = caplog.records
    assert f"no step for {WARN_S:.0f} s and owes 2 answers" in record.getMessage()
    assert "stuck" in progress.check(7, 2, 100)


def test_a_step_starts_the_clock_anew() -> None:
    progress = Progress(stuck_s=20)
    assert [progress.check(now_s // 15, 1, now_s) for now_s in range(100)] == [""] * 100


def test_an_answer_starts_the_clock_anew() -> None:
    progress = Progress(stuck_s=20)
    for now_s in range(100):
        assert progress.check(1, 1, now_s) == ""
        if now_s % 15 == 0:
            progress.note_answer()


def test_the_clock_starts_when_something_is_owed() -> None:
    progress = Progress(stuck_s=20)
    assert [progress.check(1, 0, now_s) for now_s in range(100)] == [""] * 100
    assert progress.check(1, 1, 100) == ""
    assert progress.check(1, 1, 119) == ""
    assert progress.check(1, 1, 120) != ""
