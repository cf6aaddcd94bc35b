"""The run of all benchmarks: nothing stops it, and it says what failed."""

from __future__ import annotations

import sys

import pytest

from benchmarks.__main__ import NAMES, ROOT, run_all


def command(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_failure_stops_nothing_and_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    failed = run_all(
        [
            ("slow", command("print('table'); print('slow: 3 of 4'); raise SystemExit(1)")),
            ("broken", command("import os; os._exit(3)")),
            ("fine", command("print('fine: all')")),
        ]
    )
    assert failed == ["slow", "broken"]
    lines = capfd.readouterr().out.splitlines()
    assert lines[-5:] == [
        "---",
        "slow: 3 of 4",
        "broken: ended with code 3",
        "fine: all",
        "failed: slow, broken",
    ]


def test_all_that_are_named_are_there() -> None:
    assert [name for name in NAMES if not (ROOT / "benchmarks" / f"{name}.py").is_file()] == []
