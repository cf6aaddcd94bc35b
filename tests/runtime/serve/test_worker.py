"""A worker among clients that break every rule: raw sockets, over a service that echoes."""

from __future__ import annotations

import contextlib
import os
import random
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
import zmq

from plait.runtime.protocol import (
    VERSION,
    Bye,
    Close,
    Codec,
    Events,
    Hello,
    Open,
    Ping,
    Refused,
    Submit,
    Welcome,
    WorkerMessage,
)
from plait.runtime.serve.limits import WorkerLimits
from plait.runtime.serve.link import Link

from .fakes import Recorder, RunningWorker, running_worker

CODEC = Codec()
NO_PICKLE = b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93"


@contextlib.contextmanager
def raw_client(endpoint: str, *, says_hello: bool = True) -> Iterator[zmq.Socket[bytes]]:
    """A DEALER without our manners."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, 5000)
        socket.connect(endpoint)
        if says_hello:
            socket.send(CODEC.encode(Hello(VERSION)))
            assert isinstance(receive(socket, Welcome), Welcome)
        yield socket


def receive(socket: zmq.Socket[bytes], *kinds: type[WorkerMessage]) -> WorkerMessage:
    """Wait for a message of these kinds; the others are skipped."""
    while True:
        message = CODEC.from_worker(socket.recv())
        if isinstance(message, kinds):
            return message


def check_it_serves(endpoint: str) -> None:
    """A well-behaved client is served within a second."""
    link = Link(endpoint)
    link.connect(5)
    heard = Recorder()
    start = time.monotonic()
    link.submit(link.open(b"", heard), 0, b"hello")
    heard.wait(1)
    assert heard.payloads == [b"hello"]
    assert time.monotonic() - start < 1
    link.close()


def wait_until(worker: RunningWorker, kind: str, count: int) -> None:
    deadline = time.monotonic() + 5
    while worker.worker.counts[kind] < count and time.monotonic() < deadline:
        time.sleep(0.01)
    assert worker.worker.counts[kind] == count


def test_bad_frames_are_counted_logged_once_and_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    generator = random.Random(1)
    bad = [
        [b""],
        [b"\x00" * 10_000_000],
        [b"\x80\x04."],
        [NO_PICKLE],
        [msgspec.msgpack.encode(["open", "one", b""])],
        [msgspec.msgpack.encode({"a": [1, 2, {"b": None}]})],
        [CODEC.encode(Ping()), b"extra"],
        [CODEC.encode(Ping()), b"extra", b"frames"],
        *[[generator.randbytes(generator.randrange(1, 500))] for _ in range(200)],
    ]
    with running_worker() as worker, raw_client(worker.endpoint) as client:
        for frames in bad:
            client.send_multipart(frames)
        wait_until(worker, "bad_frames", len(bad))
        check_it_serves(worker.endpoint)
    assert len([r for r in caplog.records if "dropped a message" in r.message]) == 1


def test_an_unknown_version_is_turned_away_by_name() -> None:
    with running_worker() as worker, raw_client(worker.endpoint, says_hello=False) as client:
        client.send(CODEC.encode(Hello(99)))
        bye = receive(client, Bye)
        assert isinstance(bye, Bye)
        assert f"version {VERSION}" in bye.reason
        assert "99" in bye.reason


def test_a_client_that_did_not_say_hello_is_turned_away() -> None:
    with running_worker() as worker, raw_client(worker.endpoint, says_hello=False) as client:
        client.send(CODEC.encode(Ping()))
        assert isinstance(receive(client, Bye), Bye)


def test_a_message_over_the_limit_never_reaches_the_worker() -> None:
    with running_worker() as worker:
        with raw_client(worker.endpoint) as client:
            client.send(b"\x00" * 50_000_000)
            check_it_serves(worker.endpoint)
        assert worker.worker.counts["bad_frames"] == 0


def test_a_client_that_breaks_the_credit_rule_is_refused() -> None:
    limits = WorkerLimits(credits=3, credit_bytes=1000)
    with running_worker(limits=limits) as worker, raw_client(worker.endpoint) as client:
        client.send(CODEC.encode(Open(0, b"")))
        for seq in range(4):
            client.send(CODEC.encode(Submit(0, seq, b"hold")))
        refused = receive(client, Refused)
        assert isinstance(refused, Refused)
        assert (refused.seq, refused.code) == (3, "queue_full")
        client.send(CODEC.encode(Close(0)))
        client.send(CODEC.encode(Open(1, b"")))
        client.send(CODEC.encode(Submit(1, 0, b"hold")))
        client.send(CODEC.encode(Submit(1, 0, b"hold")))  # the same segment again
        client.send(CODEC.encode(Submit(1, 1, b"x" * 999)))
        for expected in ("already running", "1000 bytes"):
            refused = receive(client, Refused)
            assert isinstance(refused, Refused)
            assert expected in refused.message
        check_it_serves(worker.endpoint)


def test_messages_for_unknown_sessions_change_nothing() -> None:
    with running_worker() as worker, raw_client(worker.endpoint) as client:
        client.send(CODEC.encode(Submit(7, 0, b"x")))
        client.send(CODEC.encode(Close(7)))
        client.send(CODEC.encode(Open(7, b"")))
        client.send(CODEC.encode(Open(7, b"")))  # twice
        client.send(CODEC.encode(Submit(7, 0, b"y")))
        events = receive(client, Events, Refused)
        assert isinstance(events, Events)
        assert (events.payload, events.finished) == (b"y", (0,))


def test_a_client_that_never_reads_is_dropped_and_the_others_are_served() -> None:
    limits = WorkerLimits(outbox_bytes=20_000_000)
    with running_worker(limits=limits) as worker, raw_client(worker.endpoint) as client:
        client.setsockopt(zmq.RCVHWM, 1)
        for session in range(20):
            client.send(CODEC.encode(Open(session, b"")))
            client.send(CODEC.encode(Submit(session, 0, b"flood100")))
            check_it_serves(worker.endpoint)
            if worker.worker.counts["dropped"]:
                break
        wait_until(worker, "dropped", 1)
        check_it_serves(worker.endpoint)


@pytest.mark.slow
def test_a_reader_that_sleeps_gets_everything_in_the_end() -> None:
    with running_worker() as worker, raw_client(worker.endpoint) as client:
        client.send(CODEC.encode(Open(0, b"")))
        client.send(CODEC.encode(Submit(0, 0, b"flood500")))  # 50 MB
        time.sleep(5)
        num_bytes = 0
        while True:
            message = receive(client, Events)
            assert isinstance(message, Events)
            num_bytes += len(message.payload)
            if message.finished:
                break
        assert num_bytes == 500 * 100_000 + len(b"flood500")


def test_fifty_disconnects_leave_no_session_behind() -> None:
    with running_worker() as worker:
        for _ in range(50):
            with raw_client(worker.endpoint) as client:
                client.send(CODEC.encode(Open(0, b"")))
                client.send(CODEC.encode(Submit(0, 0, b"hold")))
                client.setsockopt(zmq.LINGER, 1000)
        deadline = time.monotonic() + 5
        while worker.service.num_closed < 50 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert worker.service.num_closed == worker.service.num_opened == 50
        check_it_serves(worker.endpoint)


def test_a_silent_client_is_dropped() -> None:
    limits = WorkerLimits(silence_s=0.3, heartbeat_s=0.05)
    with running_worker(limits=limits) as worker, raw_client(worker.endpoint) as client:
        client.send(CODEC.encode(Open(0, b"")))
        wait_until(worker, "dropped", 1)
        assert worker.worker.num_sessions == 0


def test_more_clients_than_the_limit_are_turned_away() -> None:
    with (
        running_worker(limits=WorkerLimits(clients=1)) as worker,
        raw_client(worker.endpoint),
        raw_client(worker.endpoint, says_hello=False) as second,
    ):
        second.send(CODEC.encode(Hello(VERSION)))
        assert isinstance(receive(second, Bye), Bye)


def test_the_default_socket_is_in_a_folder_of_this_user_alone() -> None:
    with running_worker() as worker:
        path = Path(worker.endpoint.removeprefix("ipc://"))
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not any(
            connection.status == psutil.CONN_LISTEN
            for connection in psutil.Process(os.getpid()).net_connections("inet")
        )
    assert not path.parent.exists()
