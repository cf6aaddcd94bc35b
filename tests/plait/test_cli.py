"""The command line: what it prints, and what it answers to mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.__main__ import main
from plait.cli.target import load_program, parse_arguments
from plait.lang.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
HELLO = f"{ROOT / 'examples' / 'hello.py'}:hello"
REACT = f"{ROOT / 'examples' / 'react_agent.py'}:react"

COMMANDS = (
    "run",
    "replay",
    "serve",
    "pull",
    "check",
    "plan",
    "graph",
    "diff",
    "grammar",
    "models",
    "keys",
    "doctor",
)

PROGRAM = """
from plait import State, function, gen

@function
def typed(s: State, count: int, ratio: float, is_on: bool, text: str, items: list) -> None:
    s += gen("x")

helper = 3
"""


@pytest.fixture
def target(tmp_path: Path) -> str:
    path = tmp_path / "typed_program.py"
    path.write_text(PROGRAM)
    return f"{path}:typed"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"plait {command}" in capsys.readouterr().out.partition("\nexample")[2]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["graph"], "FILE.py:function"),
        (["graph", "nowhere.py:f"], "no such file"),
        (["graph", "hello"], "FILE.py:function"),
        (["graph", HELLO, "--arg", "Ada"], "name=text"),
        (["graph", HELLO, "--arg", "name:={"], "not JSON"),
        (["graph", HELLO, "--arg", "nome=Ada"], "nome"),
        (["graph", HELLO, "--format", "png"], "png"),
        (["fly"], "fly"),
        (["run", HELLO, "--model", "a", "--connect", "ipc://b"], "exclude"),
        (["run", HELLO, "--keys", "a"], "--connect"),
        (["serve", "--token-budget", "0"], "--token-budget: '0': pass a whole number, 1 or more"),
        (["serve", "--dtype", "float16"], "--dtype"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    printed = capsys.readouterr()
    assert len(printed.err.strip().splitlines()) == 1
    assert part in printed.err
    assert "Traceback" not in printed.err


def test_a_missing_model_is_one_line_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLAIT_HOME", str(tmp_path))
    assert main(["run", HELLO, "--arg", "name=Ada"]) == 1
    printed = capsys.readouterr().err
    assert len(printed.strip().splitlines()) == 1
    assert "plait pull smollm2" in printed


def test_the_doctor_names_all_that_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLAIT_HOME", str(tmp_path))
    assert main(["doctor"]) == 0
    findings = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert list(findings) == ["plait", "python", "machine", "kernels", "torch", "models", "home"]
    assert "plait pull smollm2" in findings["models"]


def test_the_store_of_a_new_home_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLAIT_HOME", str(tmp_path))
    assert main(["models"]) == 0
    assert "plait pull smollm2" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["text", "mermaid", "dot", "json"])
def test_a_graph_is_printed_in_each_format(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", HELLO, "--arg", "name=Ada", "--format", kind]) == 0
    printed = capsys.readouterr().out
    assert "greeting" in printed
    if kind == "json":
        assert json.loads(printed)["plait_graph"] == 5


def test_a_graph_says_where_python_needs_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", REACT, "--arg", "question=?"]) == 0
    assert "react_agent.py" in capsys.readouterr().err


def test_arguments_take_the_type_of_their_annotation(target: str) -> None:
    program = load_program(target)
    words = ["count=3", "ratio=0.5", "is_on=true", "text=a=b", "items:=[1, 2]"]
    assert parse_arguments(program, words) == {
        "count": 3,
        "ratio": 0.5,
        "is_on": True,
        "text": "a=b",
        "items": [1, 2],
    }


@pytest.mark.parametrize("word", ["count=three", "is_on=yes"])
def test_an_argument_of_the_wrong_type_is_refused(target: str, word: str) -> None:
    with pytest.raises(UsageError, match=word.split("=", maxsplit=1)[0]):
        parse_arguments(load_program(target), [word])


def test_an_unknown_function_lists_the_programs(target: str) -> None:
    with pytest.raises(UsageError, match="typed"):
        load_program(target.replace(":typed", ":other"))


def test_a_thing_that_is_no_program_is_refused(target: str) -> None:
    with pytest.raises(UsageError, match="function"):
        load_program(target.replace(":typed", ":helper"))
