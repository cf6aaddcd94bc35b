"""Each example against the stand-in model (golden transcripts) and on the default model."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import plait
from plait.interpreter.backend import Backend

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"


def load(path: Path) -> ModuleType:
    """Import a file of this repository by its path."""
    spec = importlib.util.spec_from_file_location(f"plait_test_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SCRIPTS = load(Path(__file__).parent / "scripts.py")


@dataclass(frozen=True)
class Case:
    """An example, the program in it, and the arguments of one run."""

    example: str
    program: str
    arguments: dict[str, object]
    is_static: bool = True

    def function(self) -> plait.Function:
        """Import the program."""
        found = getattr(load(ROOT / "examples" / f"{self.example}.py"), self.program)
        assert isinstance(found, plait.Function)
        return found


TICKET = "My name is Maria Lopez. Order KX-4821 for 49.90 has not arrived."
CASES = (
    Case("hello", "hello", {"name": "Ada"}),
    Case(
        "chat",
        "chat",
        {
            "questions": [
                "What is the capital of France?",
                "And of Italy?",
                "Which of the two is larger?",
            ]
        },
    ),
    Case("essay_judge", "judge", {"essay": "Plant more trees."}),
    Case("tree_of_thought", "tree_of_thought", {"question": "3 pens, 4 sheep each, 5 sold?"}),
    Case(
        "react_agent",
        "react",
        {"question": "A train has 8 cars with 52 seats each. How many seats?"},
        is_static=False,
    ),
    Case("json_extract", "extract", {"text": TICKET}),
    Case("classify", "classify", {"query": "Somebody has stolen my card!"}),
    Case("sql", "ask", {"question": "How many users live in London?"}),
    Case(
        "tool_call",
        "change",
        {"shopping": Counter(eggs=1), "wish": "Please add 8 eggs."},
        is_static=False,
    ),
    Case(
        "chess_move", "play", {"game": "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6", "num_moves": 2}
    ),
    Case(
        "self_consistency", "reason", {"question": "32 and 42 sweets, 35 eaten; how many are left?"}
    ),
)
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.example)


@pytest.fixture
def backend(case: Case) -> Iterator[Backend]:
    """The stand-in model with the example's script."""
    opened = plait.scripted(getattr(SCRIPTS, case.example))
    yield opened
    opened.close()


def transcript(result: plait.Result) -> str:
    """Everything that a run shows: its text, its variables, and what each branch wrote."""
    lines = [result.text(), "", "--- variables"]
    lines += [f"{name} = {result[name]!r}" for name in sorted(result.variables)]
    lines += ["", "--- outputs"]
    lines += [f"[{out.branch}] {out.variable} = {out.value!r}" for out in result.outputs()]
    return "\n".join(lines) + "\n"


@each_case
def test_the_transcript_is_the_golden_one(case: Case, backend: Backend) -> None:
    result = case.function().run(**case.arguments, backend=backend, seed=1)
    assert transcript(result) == (GOLDEN / f"{case.example}.txt").read_text()


@each_case
def test_a_recorded_run_submitted_whole_gives_the_same(case: Case, backend: Backend) -> None:
    result = case.function().run(**case.arguments, backend=backend, seed=1)
    whole = plait.run_graph(result.graph, backend=backend, seed=1)
    assert transcript(whole) == transcript(result)


@each_case
def test_a_static_trace_submitted_whole_gives_the_same(case: Case, backend: Backend) -> None:
    graph = case.function().trace(**case.arguments)
    assert graph.is_complete == case.is_static
    if not case.is_static:
        pytest.skip("its control flow depends on values; the recorded run covers it")
    result = case.function().run(**case.arguments, backend=backend, seed=1)
    whole = plait.run_graph(graph, backend=backend, seed=1)
    assert transcript(whole) == transcript(result)


@pytest.mark.slow
@each_case
def test_the_example_runs_on_the_default_model(
    case: Case, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ROOT / "examples" / f"{case.example}.py"
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_examples_are_short() -> None:
    for path in (ROOT / "examples").glob("*.py"):
        assert len(path.read_text().splitlines()) < 80, path.name
