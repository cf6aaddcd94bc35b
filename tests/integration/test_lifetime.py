"""Processes end when they should: with their parent, on a signal, and by name in an error."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from plait import State, function, gen
from plait.interpreter import defaults
from plait.interpreter.backends.embedded import EmbeddedBackend
from plait.interpreter.backends.remote import RemoteBackend
from plait.interpreter.defaults import DefaultBackend
from plait.lang.errors import BackendDied, BackendUnavailable, ModelError
from plait.runtime.config import EngineConfig

from .heard import SCRIPTS, start
from .servers import endpoint_of, finish, serve

pytestmark = pytest.mark.slow

PARENT = Path(__file__).parent / "parent.py"
SAY, SLOW = f"{SCRIPTS}:say", f"{SCRIPTS}:slow"


def start_parent(stage: str) -> tuple[subprocess.Popen[str], psutil.Process]:
    """Start a program with an embedded runtime; give both once the stage is reached."""
    environment = dict(os.environ)
    if stage == "loading":
        environment["PLAIT_TEST_SLOW_LOADING"] = "1"
    parent = subprocess.Popen(
        [sys.executable, str(PARENT), stage],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    assert parent.stdout is not None
    while parent.stdout.readline().strip() != stage:
        assert parent.poll() is None
    return parent, child_of(parent)


def child_of(parent: subprocess.Popen[str]) -> psutil.Process:
    """Wait until the parent has a child that is a runtime."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for child in psutil.Process(parent.pid).children():
            if "--listen" in child.cmdline():
                return child
        time.sleep(0.01)
    raise AssertionError("no runtime was started")


def wait_gone(process: psutil.Process, timeout_s: float) -> None:
    gone, _ = psutil.wait_procs([process], timeout_s)
    assert gone or process.status() == psutil.STATUS_ZOMBIE


def wait_lost(backend: EmbeddedBackend) -> None:
    deadline = time.monotonic() + 5
    while not backend.is_lost:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("stage", ["loading", "idle", "streaming"])
def test_no_child_is_left_when_the_parent_is_killed(stage: str) -> None:
    pairs = [start_parent(stage) for _ in range(3)]
    folders = [folder_of(child) for _, child in pairs]
    if stage == "loading":
        time.sleep(1.5)  # well inside the script's import, or on the way there
    for (parent, _), number in zip(
        pairs, (signal.SIGKILL, signal.SIGTERM, signal.SIGINT), strict=True
    ):
        parent.send_signal(number)
    start_s = time.monotonic()
    for parent, child in pairs:
        parent.wait(10)
        wait_gone(child, 5 - (time.monotonic() - start_s))
        assert parent.stdout is not None
        parent.stdout.close()
    assert not any(folder.exists() for folder in folders)


def folder_of(child: psutil.Process) -> Path:
    """Give the private folder of an embedded runtime."""
    words = child.cmdline()
    return Path(words[words.index("--listen") + 1].removeprefix("ipc://")).parent


def test_a_server_stops_on_a_signal_and_removes_its_files() -> None:
    servers = [serve("--scripted", SAY) for _ in range(3)]
    folders = [Path(endpoint_of(server).removeprefix("ipc://")).parent for server in servers]
    ways: Sequence[tuple[signal.Signals, ...]] = (
        (signal.SIGTERM,),
        (signal.SIGINT,),
        (signal.SIGINT, signal.SIGTERM),  # the second may end it by force
    )
    for server, signals, folder in zip(servers, ways, folders, strict=True):
        code, errors = finish(server, *signals)
        assert errors == ""
        assert code == 0 or len(signals) == 2
        assert len(signals) == 2 or not folder.exists()
        shutil.rmtree(folder, ignore_errors=True)


def test_an_address_in_use_is_found_before_the_model_loads(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        endpoint = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        # A model that is not there: the address must be found first.
        code, errors = finish(serve("--listen", endpoint, "--model", "none"))
    assert code == 1
    assert errors.count("\n") == 1
    assert f"{endpoint} is in use" in errors


def test_a_server_replaces_the_socket_of_one_that_was_killed(tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/x.sock"
    first = serve("--listen", endpoint, "--scripted", SAY)
    endpoint_of(first)
    second = serve("--listen", endpoint, "--scripted", SAY)
    code, errors = finish(second)
    assert (code, "is in use" in errors) == (1, True)
    finish(first, signal.SIGKILL)
    assert (tmp_path / "x.sock").exists()
    third = serve("--listen", endpoint, "--scripted", SAY)
    endpoint_of(third)
    backend = RemoteBackend(endpoint)
    assert start(backend, "abc")[1].value(1) == "3 letters"
    backend.close()
    finish(third, signal.SIGTERM)
    assert list(tmp_path.iterdir()) == []


def test_two_embedded_runtimes_keep_apart() -> None:
    with_say, with_slow = EmbeddedBackend(scripted=SAY), EmbeddedBackend(scripted=SLOW)
    try:
        runs = [(i, start(with_say, "x" * i)[1]) for i in range(1, 51)]
        _, other = start(with_slow, "go", is_streaming=True)
        assert [heard.value(1) for _, heard in runs] == [f"{i} letters" for i, _ in runs]
        other.wait_for_text()
    finally:
        with_say.close()
        with_slow.close()
    assert len(other.lost) == 1


def test_a_killed_runtime_reaches_every_waiter_within_three_seconds() -> None:
    backend = EmbeddedBackend(scripted=SLOW)
    heards = [start(backend, f"go {i}", is_streaming=True)[1] for i in range(20)]
    for heard in heards:
        heard.wait_for_text()
    os.kill(backend.pid, signal.SIGKILL)
    for heard in heards:
        heard.wait(lambda heard=heard: bool(heard.lost), 3)  # type: ignore[misc]
        assert isinstance(heard.lost[0], BackendDied)
        assert "signal 9" in str(heard.lost[0])
    assert backend.is_lost
    with pytest.raises(BackendDied):
        start(backend, "more")
    backend.close()
    assert all(len(heard.lost) == 1 for heard in heards)


def test_the_next_run_has_a_new_default_runtime_when_the_former_was_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Owner(DefaultBackend):
        """The owner of a runtime that serves a script."""

        def _start(self) -> EmbeddedBackend:
            return EmbeddedBackend(scripted=SAY)

    @function
    def program(s: State) -> None:
        s += "abc"
        s += gen("x", max_tokens=20, temperature=0)

    owner = Owner()
    monkeypatch.setattr(defaults, "_OWNER", owner)
    try:
        pids = []
        for _ in range(2):
            assert program.run()["x"] == "3 letters"
            backend = owner.get()
            assert isinstance(backend, EmbeddedBackend)
            pids.append(backend.pid)
            os.kill(backend.pid, signal.SIGKILL)
            wait_lost(backend)
    finally:
        owner.close()
    assert len(set(pids)) == 2


def test_an_engine_that_dies_ends_its_runs_and_its_process() -> None:
    backend = EmbeddedBackend(scripted=f"{SCRIPTS}:die")
    child = psutil.Process(backend.pid)
    _, heard = start(backend, "go")
    heard.wait(lambda: bool(heard.terminal(1)) or bool(heard.lost), 3)
    heard.wait(lambda: bool(heard.lost), 3)
    assert "the engine died: SystemExit: the script ends" in str(heard.lost[0])
    wait_gone(child, 5)
    backend.close()


def test_a_server_whose_engine_dies_says_so() -> None:
    server = serve("--scripted", f"{SCRIPTS}:die")
    backend = RemoteBackend(endpoint_of(server))
    start(backend, "go")
    _, errors = server.communicate(timeout=10)
    assert server.returncode == 1
    assert errors.splitlines()[-1] == "plait: the engine died: SystemExit: the script ends"
    backend.close()


def test_a_killed_server_reaches_every_waiter_within_three_seconds(tmp_path: Path) -> None:
    server = serve("--listen", f"ipc://{tmp_path}/x.sock", "--scripted", SLOW)
    backend = RemoteBackend(endpoint_of(server))
    heards = [start(backend, f"go {i}", is_streaming=True)[1] for i in range(20)]
    for heard in heards:
        heard.wait_for_text()
    killed_s = time.monotonic()
    finish(server, signal.SIGKILL)
    for heard in heards:
        heard.wait(lambda heard=heard: bool(heard.lost), 5)  # type: ignore[misc]
    assert time.monotonic() - killed_s < 3
    backend.close()


def test_closing_an_embedded_backend_leaves_nothing() -> None:
    backend = EmbeddedBackend(scripted=SAY, config=EngineConfig(block_size=1, max_running=2))
    child = psutil.Process(backend.pid)
    start_s = time.monotonic()
    backend.close()
    backend.close()
    assert time.monotonic() - start_s < 5
    assert not child.is_running()


@pytest.mark.parametrize(
    ("arguments", "error", "part"),
    [
        ({"model": "no-such-model"}, ModelError, "plait pull smollm2"),
        ({"scripted": "nowhere.py:say"}, BackendUnavailable, "nowhere.py"),
        ({"scripted": f"{SCRIPTS}:SCRIPT"}, BackendUnavailable, "SCRIPT"),
    ],
)
def test_a_runtime_that_cannot_start_says_why(
    arguments: dict[str, str], error: type[Exception], part: str
) -> None:
    with pytest.raises(error, match=part):
        EmbeddedBackend(**arguments)  # type: ignore[arg-type]


def test_a_runtime_that_does_not_come_up_in_time_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PLAIT_TEST_SLOW_LOADING", "1")
    before = set(psutil.Process().children())
    with pytest.raises(BackendUnavailable, match="does not answer"):
        EmbeddedBackend(scripted=SAY, start_timeout_s=0.5)
    assert set(psutil.Process().children()) <= before
