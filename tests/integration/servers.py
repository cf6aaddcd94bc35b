"""`plait serve` in a process of its own, for the tests of this folder."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator


def serve(*arguments: str) -> subprocess.Popen[str]:
    """Start a server."""
    return subprocess.Popen(
        [sys.executable, "-m", "plait", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def endpoint_of(server: subprocess.Popen[str]) -> str:
    """Wait until the server says where it listens."""
    assert server.stdout is not None
    line = server.stdout.readline()
    assert " at " in line, line
    return line.split(" at ")[-1].strip()


def finish(server: subprocess.Popen[str], *signals: signal.Signals) -> tuple[int, str]:
    """Send signals; give the exit code and what it said on stderr."""
    for number in signals:
        server.send_signal(number)
        time.sleep(0.05)
    _, errors = server.communicate(timeout=10)
    return server.returncode, errors


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """Give the endpoint of a server that ends with the block, and must end well."""
    server = serve(*arguments)
    try:
        yield endpoint_of(server)
    finally:
        code, errors = finish(server, signal.SIGTERM)
    assert code == 0, errors
