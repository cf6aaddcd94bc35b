"""The run of all benchmarks: nothing stops it, and it says what failed."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
MAIN = runpy.run_path(str(FOLDER / "__main__.py"))  # pytest finds no package of the checkout
NAMES: Sequence[str] = MAIN["NAMES"]
run_all: Callable[[Iterable[tuple[str, Sequence[str]]]], list[str]] = MAIN["run_all"]


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
    assert [name for name in NAMES if not (FOLDER / f"{name}.py").is_file()] == []
