"""Thousands of programs, readers that sleep, clients that never read: nobody waits for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial

import pytest
import zmq

from plait.interpreter.backend import Delta, Done, Failed, NodeEvent, Session, SessionConfig
from plait.interpreter.backends.embedded import EmbeddedBackend
from plait.interpreter.wire import encode_config, encode_nodes
from plait.lang.graph import Node
from plait.lang.ops import Gen, Sampling, Text
from plait.runtime.protocol import VERSION, Codec, Hello, Open, Submit

from .heard import GREEDY, SCRIPTS, Heard, start

pytestmark = pytest.mark.slow
NUM_PROGRAMS = 20_000


@pytest.fixture(scope="module")
def backend() -> Iterator[EmbeddedBackend]:
    backend = EmbeddedBackend(scripted=f"{SCRIPTS}:say")
    yield backend
    backend.close()


def test_twenty_thousand_programs_end_exactly_once(backend: EmbeddedBackend) -> None:
    ends: dict[int, list[NodeEvent]] = {i: [] for i in range(NUM_PROGRAMS)}
    all_ended = threading.Event()
    sessions: list[Session] = []
    num_left = NUM_PROGRAMS
    lost: list[Exception] = []

    def listener(i: int, events: Sequence[NodeEvent]) -> None:
        nonlocal num_left
        found = [event for event in events if isinstance(event, Done | Failed)]
        ends[i].extend(found)
        num_left -= len(found)
        if num_left <= 0:
            all_ended.set()

    for i in range(NUM_PROGRAMS):
        config = SessionConfig(str(i), i, GREEDY)
        sessions.append(backend.open(config, partial(listener, i), lost.append))
        sessions[-1].submit([Node(0, Text(f"program {i}"), None)])
    assert all_ended.wait(60)
    for opened in sessions:
        opened.close()
    assert lost == []
    assert ends == {i: [Done(0, f"program {i}")] for i in range(NUM_PROGRAMS)}


def test_a_reader_that_sleeps_loses_nothing(backend: EmbeddedBackend) -> None:
    texts: list[str] = []
    ended = threading.Event()
    lost: list[Exception] = []

    def sleepy(events: Sequence[NodeEvent]) -> None:
        if not texts:
            time.sleep(3.5)  # longer than it takes to notice a dead runtime
        texts.extend(event.text for event in events if isinstance(event, Delta))
        if any(isinstance(event, Done) and event.node == 1 for event in events):
            ended.set()

    sampling = Sampling(temperature=0.0, max_tokens=1000)
    config = SessionConfig("sleepy", 1, sampling, is_streaming=True)
    session = backend.open(config, sleepy, lost.append)
    session.submit([Node(0, Text("go*"), None), Node(1, Gen("x"), 0)])
    assert ended.wait(30)
    assert "".join(texts) == "la" * 500
    session.close()
    assert lost == []


def test_a_client_that_never_reads_holds_up_nobody(backend: EmbeddedBackend) -> None:
    encode = Codec().encode
    config = SessionConfig("deaf", 1, Sampling(temperature=0.0, max_tokens=4000), True)
    program = [Node(0, Text("go*"), None), Node(1, Gen("x"), 0)]
    with zmq.Context() as context, context.socket(zmq.DEALER) as deaf:
        deaf.setsockopt(zmq.LINGER, 0)
        deaf.setsockopt(zmq.RCVHWM, 1)
        deaf.connect(backend.endpoint)
        deaf.send(encode(Hello(VERSION)))
        for session in range(10):
            deaf.send(encode(Open(session, encode_config(config))))
            deaf.send(encode(Submit(session, 0, encode_nodes(program))))
        runs = [start(backend, "x" * i)[1] for i in range(1, 51)]
        for i, heard in enumerate(runs, 1):
            assert heard.value(1) == f"{i} letters"


def test_a_message_over_the_limit_is_refused_before_it_is_sent(backend: EmbeddedBackend) -> None:
    heard = Heard()
    session = backend.open(SessionConfig("big", 1, GREEDY), heard.listen, heard.on_lost)
    session.submit([Node(0, Text("x" * 50_000_000), None)])
    heard.wait(lambda: bool(heard.terminal(0)))
    (failed,) = heard.terminal(0)
    assert isinstance(failed, Failed)
    assert "limit" in failed.message
    assert start(backend, "abc")[1].value(1) == "3 letters"


def test_a_message_over_the_limit_on_the_wire_harms_its_sender_alone(
    backend: EmbeddedBackend,
) -> None:
    with zmq.Context() as context, context.socket(zmq.DEALER) as rude:
        rude.setsockopt(zmq.LINGER, 500)
        rude.connect(backend.endpoint)
        rude.send(b"\x00" * 50_000_000)
        assert start(backend, "abc")[1].value(1) == "3 letters"
