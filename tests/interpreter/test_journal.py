"""A journal: what a run has finished is not run again, whatever stopped it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import plait
from plait import Backend, State, assistant, function, gen, select, user
from plait.interpreter.journal import Journal

ROOT = Path(__file__).resolve().parents[2]


class Model:
    """A scripted model that keeps the prompts it was asked."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.backend = plait.scripted(self._answer, max_context=4096)

    def _answer(self, text: str) -> str:
        self.prompts.append(text)
        return f"{len(text)} words."

    def asked(self) -> int:
        """Give how often it was asked since the last time."""
        num_prompts = len(self.prompts)
        self.prompts.clear()
        return num_prompts


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    yield made
    close(made.backend)


def close(backend: Backend) -> None:
    backend.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.journal"


@function
def tree(s: State, topic: str, schema: dict[str, object] | None = None) -> None:
    s += user(topic) + assistant(gen("plan", max_tokens=12, temperature=0.8))
    branches = s.fork(3)
    for branch in branches:
        branch += user("Go on.") + assistant(gen("step", max_tokens=8, temperature=0.8))
        branch += user("Good?") + assistant(select("good", ["yes", "no"]))
    steps = branches.join()["step"]
    s += user(" ".join(steps)) + assistant(gen("sum", schema, max_tokens=30, temperature=0.8))


def told(result: plait.Result) -> tuple[object, ...]:
    """Give all that a result says, apart from how it came to be."""
    return result.text(), result.messages(), result.outputs(), result.usage, result.seed


def test_a_finished_run_asks_no_model_again(model: Model, path: Path) -> None:
    first = tree.run("rain", backend=model.backend, journal=path)
    assert model.asked() > 0
    again = tree.run("rain", backend=model.backend, journal=path)
    assert model.asked() == 0
    assert told(again) == told(first)


def test_a_run_goes_on_from_wherever_its_journal_ends(model: Model, path: Path) -> None:
    first = tree.run("rain", backend=model.backend, journal=path)
    lines = path.read_bytes().splitlines(keepends=True)
    needed: list[int] = []
    for num_lines in range(2, len(lines) + 1):
        torn = lines[num_lines][:9] if num_lines < len(lines) else b""
        path.write_bytes(b"".join(lines[:num_lines]) + torn)
        model.asked()
        again = tree.run("rain", backend=model.backend, journal=path)
        needed.append(model.asked())
        assert again.text() == first.text()
        assert [w.value for w in again.outputs()] == [w.value for w in first.outputs()]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > needed[-1] == 0


def test_one_damaged_record_runs_its_node_alone_again(model: Model, path: Path) -> None:
    first = tree.run("rain", backend=model.backend, journal=path)
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"text":"yes"' in line or b'"no"' in line)
    lines[at] = lines[at].replace(b'"text":"', b'"text":"x', 1)
    path.write_bytes(b"".join(lines))
    with plait.journal(str(path)) as kept:
        again = tree.run("rain", backend=model.backend, journal=kept)
    assert again.text() == first.text()
    assert kept.stats.num_added == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"topic": "snow"},
        {"schema": {"type": "integer"}},
        {"seed": 5},
        {"top_k": 3},
    ],
    ids=["prompt", "schema", "seed", "sampling"],
)
def test_what_has_changed_is_not_taken_from_the_journal(
    model: Model, path: Path, changed: dict[str, object]
) -> None:
    given: dict[str, object] = {"topic": "rain", "seed": 4}
    tree.run(**given, backend=model.backend, journal=path)
    alone = tree.run(**{**given, **changed}, backend=model.backend)
    model.asked()
    again = tree.run(**{**given, **changed}, backend=model.backend, journal=path)
    assert model.asked() > 0
    assert again.text() == alone.text()


def test_a_change_at_the_end_runs_the_end_alone(model: Model, path: Path) -> None:
    tree.run("rain", backend=model.backend, journal=path, seed=4)
    with plait.journal(str(path)) as kept:
        tree.run("rain", {"type": "integer"}, backend=model.backend, journal=kept, seed=4)
    assert kept.stats.num_added == 2  # the gen, and the end of its turn


def test_another_model_is_noticed(
    path: Path, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    tree.run("rain", backend=model.backend, journal=path)
    model.asked()
    renamed = path.read_bytes()
    with Journal(path) as kept:
        run = kept.last_run
        assert run is not None
        kept.begin(type(run)(run.program, run.seed, "other", "other-digest"))
    assert path.read_bytes().startswith(renamed)
    tree.run("rain", backend=model.backend, journal=path)
    assert "written with the model other" in caplog.text


def test_a_replay_needs_no_model_and_is_the_same_to_the_byte(model: Model, path: Path) -> None:
    first = tree.run("rain", backend=model.backend, journal=path)
    size = path.stat().st_size
    with plait.journal(str(path), is_replay=True) as kept:
        again = tree.run("rain", journal=kept)
    assert told(again) == told(first)
    assert path.stat().st_size == size


def test_a_replay_of_something_else_says_what_is_not_recorded(model: Model, path: Path) -> None:
    tree.run("rain", backend=model.backend, journal=path)
    with (
        plait.journal(str(path), is_replay=True) as kept,
        pytest.raises(plait.NotRecorded, match=r"test_journal.py:\d+: user turn is not in"),
    ):
        tree.run("snow", journal=kept)


def test_a_replay_of_an_empty_journal_says_so(path: Path) -> None:
    Journal(path).close()
    with (
        plait.journal(str(path), is_replay=True) as kept,
        pytest.raises(plait.JournalError, match="no run to replay"),
    ):
        tree.run("rain", journal=kept)


def test_a_stream_of_known_nodes_has_their_texts(model: Model, path: Path) -> None:
    tree.run("rain", backend=model.backend, journal=path)
    with plait.journal(str(path), is_replay=True) as kept:
        texts = list(tree.stream("rain", journal=kept).text("plan"))
    assert texts == [model_text(path, "plan")]


def model_text(path: Path, name: str) -> str:
    with plait.journal(str(path), is_replay=True) as kept:
        return str(tree.run("rain", journal=kept)[name])


def test_rows_of_a_batch_are_kept_each(model: Model, path: Path) -> None:
    rows = [{"topic": topic} for topic in ("rain", "snow", "rain")]
    first = tree.run_batch(rows, backend=model.backend, journal=path)
    model.asked()
    again = tree.run_batch(rows, backend=model.backend, journal=path, max_in_flight=1)
    assert model.asked() == 0
    assert [told(result) for result in again] == [told(result) for result in first]


def test_a_failed_node_is_tried_again(path: Path) -> None:
    @function
    def long(s: State) -> None:
        s += "a" * 40 + gen("x", max_tokens=4, temperature=0)

    small, large = (plait.scripted(lambda _: "yes", max_context=size) for size in (16, 256))
    try:
        with pytest.raises(plait.ContextExceeded):
            long.run(backend=small, journal=path)
        assert long.run(backend=large, journal=path)["x"] == "yes"
    finally:
        close(small)
        close(large)


def test_two_writers_at_once_are_refused(path: Path) -> None:
    with Journal(path), pytest.raises(plait.JournalError, match="in use by another run"):
        Journal(path)


@pytest.mark.parametrize("content", [b"name,age\nAda,36\n", b"{}", b"\x00" * 300])
def test_a_file_that_is_no_journal_is_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(plait.JournalError, match="is not a journal"):
        Journal(path)
    assert path.read_bytes() == content


def test_a_header_that_a_crash_has_torn_is_written_again(path: Path) -> None:
    Journal(path).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:7])
    Journal(path).close()
    assert path.read_bytes() == whole


def test_a_journal_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(plait.JournalError, match="No such file"):
        Journal(tmp_path / "no" / "run.journal")


def test_a_journal_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(plait.InvalidArgument, match=r"journal=3: pass the path"):
        tree.run("rain", journal=3)


KILLED = """
import sys, time, plait
from tests.interpreter.test_journal import tree

def answer(text):
    with open(sys.argv[2], "a") as asked:
        asked.write("x")
    time.sleep(0.02)
    return f"{len(text)} words."

backend = plait.scripted(answer, max_context=4096)
print(tree.run("rain", seed=3, backend=backend, journal=sys.argv[1]).text())
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_as_if_it_had_not_been(model: Model, tmp_path: Path) -> None:
    whole = tree.run("rain", seed=3, backend=model.backend).text()
    path, asked = tmp_path / "run.journal", tmp_path / "asked"
    command = [sys.executable, "-c", KILLED, str(path), str(asked)]
    kept: list[int] = []
    for _ in range(5):
        run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        before = path.stat().st_size if path.exists() else 0
        deadline = time.monotonic() + 30
        while run.poll() is None and time.monotonic() < deadline:
            if path.exists() and path.stat().st_size > before + 700:
                os.kill(run.pid, signal.SIGKILL)
                break
            time.sleep(0.002)
        run.communicate()
        kept.append(path.stat().st_size)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert kept == sorted(kept)
    assert done.stdout == whole + "\n"


def test_scores_and_values_without_their_stop_are_replayed(model: Model, path: Path) -> None:
    @function
    def judge(s: State) -> tuple[float, object]:
        s += "Q: " + gen("x", max_tokens=20, stop=" w", keep_stop=True) + "|"
        s += s.ref("x")
        picked = select("pick", ["a", "b"], abstain_below=1.0)
        s += picked + gen("y", max_tokens=3)
        return s.score("never").total, s["pick"]

    first = judge.run(backend=model.backend, journal=path, seed=2)
    with plait.journal(str(path), is_replay=True) as kept:
        again = judge.run(journal=kept)
    assert again.value == first.value
    assert told(again) == told(first)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))
    resumed = judge.run(backend=model.backend, journal=path)
    assert resumed.value == first.value
    assert resumed.text() == first.text()


def test_bodies_that_run_at_the_same_time_are_replayed(model: Model, path: Path) -> None:
    def solve(branch: State, topic: str) -> str:
        branch += user(topic) + assistant(gen("x", max_tokens=6, temperature=0.9))
        if len(branch["x"]) % 2:
            branch += user("Again.") + assistant(gen("y", max_tokens=6, temperature=0.9))
        return str(branch["x"])

    @function
    def all_of(s: State) -> list[str]:
        s += user("Let us begin.")
        return list(s.map(solve, ["rain", "snow", "hail"]).values)

    first = all_of.run(backend=model.backend, journal=path)
    model.asked()
    assert told(all_of.run(backend=model.backend, journal=path)) == told(first)
    assert model.asked() == 0
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    again = all_of.run(backend=model.backend, journal=path)
    assert again.value == first.value
    assert model.asked() > 0
