"""`plait check`: a problem a line, and the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.__main__ import main

PROGRAMS = """\
from plait import State, function, gen

@function
def sound(s: State, q: str) -> None:
    s += q + gen("x", max_tokens=4)

@function
def odd(s: State, q: str) -> None:
    s += "?" + gen("x", max_tokens=4)

@function
def broken(s: State) -> None:
    s += "?" + s.ref("y")
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "several.py"
    path.write_text(PROGRAMS)
    return str(path)


def test_a_sound_program_prints_nothing(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{file}:sound"]) == 0
    assert capsys.readouterr().out == ""


def test_a_warning_is_printed_and_passes(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{file}:odd"]) == 0
    assert capsys.readouterr().out == (
        'several.py:8: warning: the argument "q" is never used; '
        "put it into the text, or take it out of the signature\n"
    )


def test_a_file_is_checked_whole_and_an_error_fails(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", file]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["several.py:8", "warning"],
        ["several.py:13", "error"],
    ]


def test_arguments_are_of_one_program(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{file}:sound", "--arg", "q=why"]) == 0
    assert main(["check", file, "--arg", "q=why"]) == 2
    assert "name it, FILE.py:function" in capsys.readouterr().err


def test_a_check_says_where_an_open_argument_ends_it(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(file).write_text(PROGRAMS.replace("s += q +", "s += q.title() +"))
    assert main(["check", f"{file}:sound"]) == 0
    assert capsys.readouterr().err == (
        "several.py:5: what follows is not checked: Python needs q; pass --arg q=...\n"
    )
    assert main(["check", f"{file}:sound", "--arg", "q=why"]) == 0
    assert capsys.readouterr().err == ""


def test_a_file_without_programs_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("x = 3\n")
    assert main(["check", str(empty)]) == 2
    assert "has no program" in capsys.readouterr().err


@pytest.mark.parametrize(
    "path",
    sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py")),
    ids=lambda path: path.stem,
)
def test_the_examples_have_no_problem(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if path.stem != "__init__":
        assert main(["check", str(path)]) == 0
        assert capsys.readouterr().out == ""
