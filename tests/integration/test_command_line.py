"""Whole commands, each in a process of its own: `plait serve`, `run`, `keys`, `pull`, `models`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home

from .heard import SCRIPTS
from .servers import serving

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
HELLO = f"{ROOT / 'examples' / 'hello.py'}:hello"
SAY = f"{SCRIPTS}:say"
PROGRAM = """
from plait import State, function, gen, select

@function
def program(s: State, text: str) -> None:
    s += text
    s += gen("length", max_tokens=20, temperature=0)
    s += select("choice", ["yes", "no"])
"""


def plait(*words: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run one command to its end, which must be a good one."""
    environment = dict(os.environ)
    if home is not None:
        environment["PLAIT_HOME"] = str(home)
    command = [sys.executable, "-m", "plait", *words]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return f"{path}:program"


def test_a_program_runs_on_a_server(program: str) -> None:
    with serving("--scripted", SAY) as endpoint:
        ran = plait("run", program, "--arg", "text=abc", "--connect", endpoint)
        assert ran.stdout.startswith("abc3 letters")
        assert "length = '3 letters'" in ran.stderr
        ran = plait("run", program, "--arg", "text=abcd", "--connect", endpoint, "--stream")
        first, second = ran.stdout.splitlines()
        assert first == "length: 4 letters"
        assert second in ("choice: yes", "choice: no")


def test_a_graph_runs_on_a_server_without_its_source(program: str, tmp_path: Path) -> None:
    graph = tmp_path / "program.json"
    graph.write_text(plait("graph", program, "--format", "json").stdout)
    Path(program.rpartition(":")[0]).unlink()
    with serving("--scripted", SAY) as endpoint:
        ran = plait("run", str(graph), "--input", "text=abc", "--connect", endpoint)
    assert ran.stdout.startswith("abc3 letters")
    assert "length = '3 letters'" in ran.stderr


def test_a_program_runs_over_tcp_with_keys_and_not_without(program: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    said = plait("keys", str(keys)).stdout
    assert f"plait serve --keys {keys}" in said
    with serving(
        "--scripted", SAY, "--listen", "tcp://127.0.0.1:0", "--keys", str(keys)
    ) as endpoint:
        words = ["run", program, "--arg", "text=abc", "--connect", endpoint]
        for folder in (keys, keys / "client"):
            assert plait(*words, "--keys", str(folder)).stdout.startswith("abc3 letters")
        command = [sys.executable, "-m", "plait", *words]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 1
        assert "keys" in ran.stderr


def test_a_file_is_pulled_listed_and_run(tmp_path: Path) -> None:
    stored = Store(default_home()).find(DEFAULT_MODEL)
    if stored is None:
        pytest.skip("needs `plait pull smollm2`")
    file = stored.path / "model.gguf"
    pulled = plait("pull", str(file), "--name", "tiny", home=tmp_path)
    (model,) = Store(tmp_path).models()
    assert model.name == "tiny"
    assert pulled.stdout.strip() == str(model.path)
    assert model.name in plait("models", home=tmp_path).stdout
    ran = plait("run", HELLO, "--arg", "name=Ada", "--model", model.name, home=tmp_path)
    assert "greeting = " in ran.stderr
