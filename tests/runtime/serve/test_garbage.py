"""Bytes that are no messages, in both directions and on every kind of socket: nothing runs them."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from plait.interpreter.backend import Capabilities, SessionConfig
from plait.interpreter.backends.remote import RemoteBackend
from plait.interpreter.wire import encode_capabilities
from plait.lang.errors import BackendDied, BackendUnavailable
from plait.lang.graph import Node
from plait.lang.ops import Text
from plait.runtime.errors import LinkError
from plait.runtime.protocol import VERSION, Codec, Events, Open, Welcome
from plait.runtime.serve.keys import create_keys
from plait.runtime.serve.link import Link

from .fakes import Recorder, running_worker

ENCODE = Codec().encode
DESCRIPTION = encode_capabilities(Capabilities("model", 100, has_chat_template=False))


def bomb(path: Path) -> bytes:
    """Give a pickle that makes a file when it is loaded."""
    return f"cposix\nsystem\n(S'touch {path}'\ntR.".encode()


def random_frames() -> list[bytes]:
    generator = random.Random(11)
    return [generator.randbytes(generator.randrange(1, 3000)) for _ in range(50)]


class FakeRuntime:
    """A ROUTER that answers every message with the next of `replies`, then with silence."""

    def __init__(self, folder: Path, replies: list[list[bytes]]) -> None:
        self.endpoint = f"ipc://{folder}/fake.sock"
        self._replies = replies
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(self.endpoint)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._answer)
        self._thread.start()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._context.destroy(linger=0)

    def _answer(self) -> None:
        while not self._is_over.is_set():
            if self._socket.poll(20):
                identity = self._socket.recv_multipart()[0]
                if self._replies:
                    self._socket.send_multipart([identity, *self._replies.pop(0)])


@contextlib.contextmanager
def fake_runtime(folder: Path, *replies: list[bytes]) -> Iterator[str]:
    fake = FakeRuntime(folder, list(replies))
    try:
        yield fake.endpoint
    finally:
        fake.close()


def welcome(description: bytes = b"") -> bytes:
    return ENCODE(Welcome(VERSION, "epoch", 10, 10**6, 0.25, description))


@pytest.mark.parametrize("kind", ["bomb", "empty", "random", "two frames", "a client's message"])
def test_a_client_takes_garbage_for_an_answer_as_an_error(kind: str, tmp_path: Path) -> None:
    frames = {
        "bomb": [bomb(tmp_path / "ran")],
        "empty": [b""],
        "random": random_frames()[:1],
        "two frames": [welcome(), bomb(tmp_path / "ran")],
        "a client's message": [ENCODE(Open(0, b""))],
    }[kind]
    with fake_runtime(tmp_path, frames) as endpoint:
        link = Link(endpoint)
        with pytest.raises(LinkError, match="the runtime sent not a message of version"):
            link.connect(5)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("frame", random_frames()[:10])
def test_random_bytes_after_the_welcome_end_the_link_and_tell_its_sessions(
    frame: bytes, tmp_path: Path
) -> None:
    heard = Recorder()
    with fake_runtime(tmp_path, [welcome()], [frame]) as endpoint:
        link = Link(endpoint)
        link.connect(5)
        link.open(b"", heard)
        heard.wait(lost=1)
        link.close()


def test_a_bomb_in_place_of_capabilities_is_an_error(tmp_path: Path) -> None:
    reply = welcome(bomb(tmp_path / "ran"))
    with (
        fake_runtime(tmp_path, [reply]) as endpoint,
        pytest.raises(BackendUnavailable),
    ):
        RemoteBackend(endpoint, connect_timeout_s=5)
    assert not (tmp_path / "ran").exists()


def test_a_bomb_in_place_of_events_loses_the_run(tmp_path: Path) -> None:
    lost: list[Exception] = []
    is_lost = threading.Event()

    def on_lost(error: Exception) -> None:
        lost.append(error)
        is_lost.set()

    events = [ENCODE(Events(0, bomb(tmp_path / "ran")))]
    with fake_runtime(tmp_path, [welcome(DESCRIPTION)], events) as endpoint:
        backend = RemoteBackend(endpoint)
        session = backend.open(SessionConfig("run", seed=1), lambda events: None, on_lost)
        session.submit([Node(0, Text("a"), None)])
        assert is_lost.wait(5)
        backend.close()
    assert [type(error) for error in lost] == [BackendDied]
    assert not (tmp_path / "ran").exists()


def raw_tcp(endpoint: str, data: bytes) -> None:
    """Send bytes past ZeroMQ, and wait until the worker hangs up or says something."""
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=2) as connection:
        connection.settimeout(0.2)
        with contextlib.suppress(OSError):  # it may hang up in the middle
            connection.sendall(data)
            connection.recv(64)


@pytest.mark.parametrize("has_keys", [False, True])
def test_garbage_over_tcp_leaves_the_worker_serving(has_keys: bool, tmp_path: Path) -> None:
    keys = tmp_path / "keys" if has_keys else None
    if keys is not None:
        create_keys(keys)
    garbage = [bomb(tmp_path / "ran"), *random_frames()]
    with running_worker("tcp://127.0.0.1:0", keys=keys) as worker:
        for data in garbage[:5]:
            raw_tcp(worker.endpoint, data)
        with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
            stranger.setsockopt(zmq.LINGER, 100)
            stranger.connect(worker.endpoint)
            for data in garbage:
                stranger.send(data)
            link = Link(worker.endpoint, keys=keys)
            link.connect(5)
            heard = Recorder()
            link.submit(link.open(b"", heard), 0, b"hello")
            heard.wait(1)
            link.close()
        counts = worker.worker.counts
        deadline_s = time.monotonic() + 5
        while not has_keys and counts["bad_frames"] < len(garbage):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        assert not has_keys or not counts  # a stranger's frames never reach the worker at all
    assert not (tmp_path / "ran").exists()
