"""Graphs as files: `plait graph`, `plait diff` and `plait run` take them in place of programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import plait
from plait.__main__ import main
from plait.interpreter.backend import Backend

PROGRAM = """\
from plait import State, function, gen

@function
def greet(s: State, name: str) -> None:
    s += "Hello " + name
    s += gen("reply", max_tokens=4, temperature=0)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "greeting.py"
    path.write_text(PROGRAM)
    return f"{path}:greet"


@pytest.fixture
def graph(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["graph", program, "--format", "json"]) == 0
    path = tmp_path / "greeting.json"
    path.write_text(capsys.readouterr().out)
    return str(path)


def test_a_graph_runs_without_its_program(
    graph: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def backend(*_: object) -> Backend:
        return plait.scripted(lambda text: "!" if text.endswith("Ada") else "?")

    monkeypatch.setattr("plait.cli.run._backend", backend)
    assert main(["run", graph, "--input", "name=Ada"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "Hello Ada!\n"
    assert printed.err == "reply = '!'\n"
    assert main(["run", graph]) == 2
    assert "missing name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["run", "GRAPH", "--arg", "name=Ada"], "--arg is for a program"),
        (["run", "GRAPH", "--input", "name=Ada", "--stream"], "--stream is for a program"),
        (["run", "GRAPH", "--input", "Ada"], "write NAME=TEXT"),
        (["run", "PROGRAM", "--input", "name=Ada"], "a program takes --arg"),
        (["diff", "GRAPH", "nowhere.json"], "nowhere.json: No such file"),
        (["graph"], "pass FILE.py:function"),
    ],
)
def test_wrong_usage_is_named(
    words: list[str],
    fault: str,
    graph: str,
    program: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = {"GRAPH": graph, "PROGRAM": program}
    assert main([names.get(word, word) for word in words]) == 2
    assert fault in capsys.readouterr().err


def test_a_file_that_is_no_graph_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.json"
    path.write_text("{}")
    assert main(["run", str(path)]) == 1
    assert 'other.json: this is not a graph: "plait_graph" is missing' in capsys.readouterr().err


def test_a_diff_of_a_program_and_its_graph_is_empty(
    program: str, graph: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", program, graph]) == 0
    assert capsys.readouterr().out == ""


def test_a_diff_has_the_nodes_that_changed_and_exit_code_1(
    program: str, graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = tmp_path / "newer.py"
    newer.write_text(PROGRAM.replace("max_tokens=4", "max_tokens=5"))
    assert main(["diff", graph, f"{newer}:greet"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "- gen reply max_tokens=4 temperature=0.0  greeting.py:6",
        "+ gen reply max_tokens=5 temperature=0.0  newer.py:6",
    ]


def test_a_graph_is_drawn_from_its_file(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", graph]) == 0
    assert capsys.readouterr().out.startswith("greet(name)")


def test_the_schema_of_graphs_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "A graph of plait, version 5"
