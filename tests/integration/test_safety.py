"""Nothing on the wire can run code, and no bad frame stops a server."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
import zmq

from plait.interpreter.backend import SessionConfig
from plait.interpreter.backends.remote import RemoteBackend
from plait.interpreter.wire import encode_config, encode_nodes
from plait.lang.graph import Node
from plait.lang.ops import Text
from plait.runtime.protocol import VERSION, Cancel, Codec, Hello, Open, Ping, Submit

from .heard import GREEDY, SCRIPTS, start

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("lang", "interpreter", "runtime", "kernels", "plait", "examples", "benchmarks")
BANNED = re.compile(
    r"\b(?:import|from)\s+(?:pickle|cPickle|cloudpickle|dill|marshal|shelve)\b"
    r"|\bpickle\.|recv_pyobj|send_pyobj|torch\.load\b|yaml\.load\b|allow_pickle=True"
    r"|(?<![\w.])(?:eval|exec)\("
)
# A global of protocol 4 that is called with "true": what a pickle bomb looks like.
BOMB = (
    b"\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R."
)


def test_no_module_of_ours_can_unpickle_or_evaluate() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for part in PARTS
        for path in (ROOT / part).rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if BANNED.search(line)
    ]
    assert found == []


def test_the_ban_finds_what_it_bans() -> None:
    for line in ("import pickle", "from dill import x", "sock.recv_pyobj()", "torch.load(f)"):
        assert BANNED.search(line)
    for line in ("model.eval()", "loader.exec_module(m)", "def retrieval(x):"):
        assert not BANNED.search(line)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "plait", "serve", "--scripted", f"{SCRIPTS}:say"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    endpoint = process.stdout.readline().split(" at ")[-1].strip()
    yield process, endpoint
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert len(errors.splitlines()) <= 4  # the first of each kind of misdeed


def check_it_serves(endpoint: str) -> None:
    backend = RemoteBackend(endpoint)
    assert start(backend, "abc")[1].value(1) == "3 letters"
    backend.close()


def bad_messages() -> list[list[bytes]]:
    """Frames that are no message, and messages whose payload is no payload."""
    encode = Codec().encode
    generator = random.Random(7)
    settings = encode_config(SessionConfig("run", 1, GREEDY))
    cyclic = msgspec.msgpack.encode([{"id": 0, "prev": 0}])
    return [
        [b""],
        [b"", b""],
        [b"\x00" * 10_000_000],
        [BOMB],
        [encode(Hello(99))],
        [encode(Ping()), BOMB],
        [encode(Open(1, BOMB))],
        [encode(Open(2, settings)), b"more"],
        [encode(Open(3, settings))],
        [encode(Submit(3, 0, BOMB))],
        [encode(Submit(3, 1, b"\x00" * 10_000_000))],
        [encode(Submit(3, 2, cyclic))],
        [encode(Submit(3, 3, encode_nodes([Node(0, Text("a"), None)])))],
        [encode(Submit(3, 4, encode_nodes([Node(0, Text("again"), None)])))],
        [encode(Submit(3, 5, encode_nodes([Node(5, Text("nowhere"), 4)])))],
        [encode(Cancel(3, BOMB))],
        [encode(Submit(9, 0, b""))],
        [msgspec.msgpack.encode({"tag": "hello", "version": VERSION})],
        *[[generator.randbytes(generator.randrange(1, 2000))] for _ in range(500)],
    ]


@pytest.mark.slow
def test_bad_frames_leave_the_server_serving(
    server: tuple[subprocess.Popen[str], str],
) -> None:
    _, endpoint = server
    for greeting in ([], [Codec().encode(Hello(VERSION))]):
        with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
            socket.setsockopt(zmq.LINGER, 2000)
            socket.connect(endpoint)
            for frames in ([greeting] if greeting else []) + bad_messages():
                socket.send_multipart(frames)
            check_it_serves(endpoint)
        check_it_serves(endpoint)


@pytest.mark.slow
def test_the_default_server_listens_on_no_network(
    server: tuple[subprocess.Popen[str], str],
) -> None:
    process, endpoint = server
    assert endpoint.startswith("ipc:///")
    connections = psutil.Process(process.pid).net_connections("inet")
    assert [one for one in connections if one.status == psutil.CONN_LISTEN] == []


@pytest.mark.slow
def test_beyond_loopback_a_server_wants_keys() -> None:
    command = [sys.executable, "-m", "plait", "serve", "--listen", "tcp://0.0.0.0:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "CURVE" in done.stderr
    assert len(done.stderr.splitlines()) == 1
