"""`plait run`, on a scripted model: what it prints, and how it tells of a program's errors."""

from __future__ import annotations

from pathlib import Path

import pytest

import plait
from plait.__main__ import main
from plait.interpreter.backend import Backend

PROGRAM = """\
from plait import State, function, gen, select

@function
def review(s: State, text: str, mark: int = 3) -> None:
    s += text
    moods = s.fork(2)
    moods[0] += gen("mood", max_tokens=4, temperature=0)
    moods[1] += gen("stars", max_tokens=4, temperature=0)
    moods.join()
    s += select("verdict", ["good", "bad"])
    s += gen("reply", max_tokens=4, temperature=0)

@function
def own_error(s: State) -> None:
    raise ValueError("of my own")

@function
def wrong_argument(s: State) -> None:
    s += gen("x", temperature=-1)

@function
def wrong_grammar(s: State) -> None:
    s += gen("x", regex="(")
    s += gen("y")

@function
def handled(s: State) -> None:
    bad, good = s.fork(2)
    bad += gen("x", regex="(")
    try:
        bad["x"]
    except Exception:
        good += gen("y", max_tokens=4, temperature=0)

bound = review.bind(text="a text")
"""


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    def backend(*args: object) -> Backend:
        return plait.scripted(lambda text: "ok")

    monkeypatch.setattr("plait.cli.run._backend", backend)
    path = tmp_path / "review.py"
    path.write_text(PROGRAM)
    return str(path)


def run(target: str, name: str, *words: str) -> int:
    return main(["run", f"{target}:{name}", *words])


def test_a_run_prints_the_text_and_its_variables(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(target, "review", "--arg", "text=Fine.") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("Fine.")
    assert "reply = 'ok'" in printed.err
    assert "mood = ['ok', None]" in printed.err


def test_a_stream_prints_each_variable_on_a_line_of_its_own(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(target, "review", "--arg", "text=Fine.", "--stream") == 0
    printed = capsys.readouterr()
    *branches, verdict, reply = printed.out.splitlines()
    assert sorted(branches) == ["0.0/mood: ok", "0.1/stars: ok"]
    assert verdict in ("verdict: good", "verdict: bad")
    assert reply == "reply: ok"
    assert printed.err == ""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_error", "review.py:15: ValueError: of my own"),
        ("wrong_argument", "review.py:19: gen('x'): temperature=-1"),
        ("wrong_grammar", 'review.py:23: gen("x"): regex'),
    ],
)
@pytest.mark.parametrize("flags", [[], ["--stream"]])
def test_an_error_in_a_program_has_its_line_first(
    name: str, message: str, flags: list[str], target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(target, name, *flags) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("review.py:")
    assert message in printed
    assert printed.count(message) == 1
    assert "Traceback" not in printed


def test_debug_shows_the_traceback(target: str) -> None:
    with pytest.raises(ValueError, match="of my own"):
        run(target, "own_error", "--debug")


def test_a_failure_that_the_program_handles_is_told_once(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(target, "handled", "--stream") == 0
    printed = capsys.readouterr()
    assert printed.out == "0.1/y: ok\n"
    assert printed.err.count("review.py:") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "review.py:3: review needs text; pass --arg text=..."),
        (["--arg", "txt=a"], "review.py:3: review has no argument txt; its arguments: text, mark"),
    ],
)
def test_arguments_that_do_not_match_say_what_to_type(
    words: list[str], message: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(target, "review", *words) == 2
    assert message in capsys.readouterr().err


def test_a_bound_program_needs_what_is_left(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(target, "bound") == 0
    assert capsys.readouterr().out.startswith("a text")


def test_a_wrong_seed_is_wrong_usage(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(target, "bound", "--seed", "-1") == 2
    assert "seed=-1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [("x = (", "broken.py:1: SyntaxError"), ("\n1 / 0", "broken.py:2: ZeroDivisionError")],
)
def test_a_file_that_python_cannot_import_is_named_with_the_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text(text)
    assert main(["graph", f"{tmp_path / 'broken.py'}:f"]) == 1
    assert capsys.readouterr().err.startswith(message)


def test_a_journal_is_replayed_without_a_model(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [f"{target}:review", "--arg", "text=A film.", "--journal", str(tmp_path / "kept")]
    assert main(["run", *words]) == 0
    first = capsys.readouterr()
    assert "0 outcomes were known, 4 are new" in first.err

    def no_model(*args: object) -> Backend:
        raise AssertionError("a replay asks no model")

    monkeypatch.setattr("plait.interpreter.run.default_backend", no_model)
    assert main(["replay", *words]) == 0
    assert capsys.readouterr().out == first.out


def test_a_replay_of_other_arguments_says_what_is_not_there(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [f"{target}:review", "--journal", str(tmp_path / "kept"), "--arg"]
    assert main(["run", *words, "text=A film."]) == 0
    assert main(["replay", *words, "text=A book."]) == 1
    assert "is not in the journal" in capsys.readouterr().err
