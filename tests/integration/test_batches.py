"""Many rows and many branches on one embedded runtime: few threads, and one end for each."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import psutil
import pytest

from plait import BackendDied, State, function, gen
from plait.interpreter.backends.embedded import EmbeddedBackend

from .heard import SCRIPTS

pytestmark = pytest.mark.slow

NUM_BRANCHES = 1600
MAX_THREADS = 20


@function
def endless(s: State, text: str) -> None:
    """Never end on the script `slow`."""
    s += text
    s += gen("x", max_tokens=4000)


@function
def wide(s: State) -> None:
    """Fork as wide as the goal says, and join."""
    s += "go"
    branches = s.fork(NUM_BRANCHES)
    for i, branch in enumerate(branches):
        branch += f" {i}"
        branch += gen("x", max_tokens=20, temperature=0)
    branches.join()


def test_a_runtime_killed_in_a_batch_fails_each_row_and_leaves_no_process() -> None:
    before = psutil.Process().children(recursive=True)  # other tests' default runtime
    backend = EmbeddedBackend(scripted=f"{SCRIPTS}:slow")
    child = psutil.Process(backend.pid)
    killed_s: list[float] = []

    def kill() -> None:
        time.sleep(1)
        killed_s.append(time.monotonic())
        os.kill(backend.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    results = endless.run_batch([{"text": f"row {i}"} for i in range(50)], backend=backend)
    ended_s = time.monotonic()
    killer.join()
    assert [type(result.error) for result in results] == [BackendDied] * 50
    assert all("signal 9" in str(result.error) for result in results)
    assert ended_s - killed_s[0] < 3
    backend.close()
    assert not child.is_running()
    left = [one for one in psutil.Process().children(recursive=True) if one not in before]
    assert not [one for one in left if one.is_running()]


class ThreadCount:
    """The most threads that some processes had at a time."""

    def __init__(self, *pids: int) -> None:
        self._processes = [psutil.Process(pid) for pid in pids]
        self._is_over = threading.Event()
        self.most = [0] * len(pids)

    def during(self, act: Callable[[], None]) -> None:
        """Count while `act` runs."""
        counter = threading.Thread(target=self._count)
        counter.start()
        try:
            act()
        finally:
            self._is_over.set()
            counter.join()

    def _count(self) -> None:
        while not self._is_over.wait(0.02):
            for i, process in enumerate(self._processes):
                self.most[i] = max(self.most[i], process.num_threads())


def test_sixteen_hundred_branches_need_fewer_than_twenty_threads() -> None:
    backend = EmbeddedBackend(scripted=f"{SCRIPTS}:say")
    before = psutil.Process().num_threads()
    count = ThreadCount(os.getpid(), backend.pid)

    def run() -> None:
        result = wide.run(backend=backend)
        values = [f"{len(f'go {i}')} letters" for i in range(NUM_BRANCHES)]
        assert result["x"] == values

    count.during(run)
    backend.close()
    client, runtime = count.most
    assert client - before < MAX_THREADS
    assert runtime < MAX_THREADS
