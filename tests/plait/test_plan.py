"""`plait plan`: the plan, its calls, and what is wrong with rows."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

import plait
from plait.__main__ import main
from plait.interpreter.model_text import ModelText, text_of_backend
from plait.runtime.load.store import Store, default_home

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
from plait import State, function, gen

@function
def reply(s: State, letter: str, style: str = "kind") -> None:
    s += "Reply in a " + style + " way. " + letter
    s += gen("reply", max_tokens=20)
"""


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    def text(*_: object) -> ModelText:
        backend = plait.scripted(lambda text: pytest.fail("a plan asks no model"), max_context=256)
        backend.close()
        return text_of_backend(backend)

    monkeypatch.setattr("plait.interpreter.plan._text", text)
    path = tmp_path / "letters.py"
    path.write_text(PROGRAM)
    return f"{path}:reply"


def rows_file(tmp_path: Path, *rows: object) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n\n".join(map(json.dumps, rows)))
    return str(path)


def test_a_plan_of_a_run_is_printed(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", target, "--arg", "letter=Hello!"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "reply: 1 row",
        "calls                   1  1 gens, 0 selects",
        "prompt tokens          27",
        "cached tokens           0  0.0% of the prompt tokens",
        "output tokens          20  at most",
        "peak KV tokens         46  46 to keep all",
    ]


def test_a_plan_of_rows_shares_their_prefix(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_file(tmp_path, {"letter": "Hello!"}, {"letter": "Hi!"})
    words = ["plan", target, "--rows", rows, "--arg", "style=short", "--calls"]
    assert main([*words, "--output-tokens", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "reply: 2 rows"
    assert lines[4].split()[2] == "10"
    calls = [line.split() for line in lines if 'gen("reply")' in line]
    assert [call[:5] for call in calls] == [["0", "1", "28", "0", "5"], ["1", "1", "25", "23", "5"]]
    assert calls[0][-1] == "letters.py:6"


def test_a_row_that_would_fail_is_exit_code_1(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_file(tmp_path, {"letter": "x" * 300}, {"letter": "Hi!"})
    assert main(["plan", target, "--rows", rows]) == 1
    assert "fails at letters.py:6, row 0: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[1]", "line 1: a row is an object"),
        ("\n{", "line 2: not JSON"),
        ("{}", "reply needs letter"),
        ('{"letter": "", "tone": ""}', "has no argument tone"),
    ],
)
def test_wrong_rows_are_wrong_usage(
    text: str, fault: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    assert main(["plan", target, "--rows", str(path)]) == 2
    assert fault in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("task", range(4), ids=["tree", "select", "judge", "extraction"])
def test_a_plan_has_the_tokens_that_the_default_model_takes(
    task: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if Store(default_home()).find("smollm2") is None:
        pytest.skip("needs `plait pull smollm2`")
    monkeypatch.syspath_prepend(ROOT)  # pytest finds no package of the checkout
    tasks = importlib.import_module("benchmarks.program_tasks").TASKS
    program, rows = tasks[task].program, tasks[task].rows(0)[:3]
    made = plait.plan(program, rows=rows, model="smollm2")
    backend = plait.local("smollm2", kv_cache_tokens=16_384)
    try:
        results = program.run_batch(rows, backend=backend, seed=1)
    finally:
        backend.close()
    prompt = sum(result.usage.prompt_tokens for result in results)
    cached = sum(result.usage.cached_tokens for result in results)
    assert made.prompt_tokens == pytest.approx(prompt, rel=0.02)
    assert made.hit_rate == pytest.approx(cached / prompt, abs=0.01)
    assert made.output_tokens >= sum(result.usage.output_tokens for result in results)
