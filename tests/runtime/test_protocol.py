"""The wire's messages: what they encode to, and what is not one of them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime import protocol
from plait.runtime.protocol import (
    Bye,
    Cancel,
    ClientMessage,
    Close,
    Codec,
    Events,
    Heartbeat,
    Hello,
    Open,
    Ping,
    ProtocolError,
    Refused,
    Submit,
    Welcome,
    WorkerMessage,
)

FROM_CLIENT: list[ClientMessage] = [
    Hello(1),
    Open(0, b"x"),
    Submit(1, 2, b"\x00\xff"),
    Cancel(1, b""),
    Close(1),
    Ping(),
    Bye("", "the client leaves"),
]
FROM_WORKER: list[WorkerMessage] = [
    Welcome(1, "e", 10, 100, 0.25, b"d"),
    Events(1, b"x", (1, 2)),
    Refused(1, None, "internal", "m"),
    Refused(1, 3, "internal", "m"),
    Heartbeat("e", 1, 2, 3),
    Bye("e", "stopping"),
]


@pytest.mark.parametrize("message", FROM_CLIENT)
def test_a_clients_message_survives_the_wire(message: ClientMessage) -> None:
    codec = Codec()
    assert codec.from_client(codec.encode(message)) == message


@pytest.mark.parametrize("message", FROM_WORKER)
def test_a_workers_message_survives_the_wire(message: WorkerMessage) -> None:
    codec = Codec()
    assert codec.from_worker(codec.encode(message)) == message


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x00" * 10_000_000,
        b"\x80\x04.",
        b"\x91" * 100_000,
        msgspec.msgpack.encode({"tag": "hello", "version": 1}),
        msgspec.msgpack.encode(["hello"]),
        msgspec.msgpack.encode(["hello", 1, 2]),
        msgspec.msgpack.encode(["hello", -1]),
        msgspec.msgpack.encode(["hello", "1"]),
        msgspec.msgpack.encode(["nothing", 1]),
        msgspec.msgpack.encode(["submit", 1, 2, "text"]),
        msgspec.msgpack.encode(["submit", 2**60, 2, b""]),
        msgspec.msgpack.encode(["heartbeat", "e", 1, 2, 3]),  # a worker's word
        msgspec.msgpack.encode(["bye", "e" * 65, ""]),
        msgspec.msgpack.encode(["bye", "", "r" * 5000]),
        msgspec.msgpack.encode(["close", 1]) + b"\x00",
        msgspec.msgpack.encode(["open", 1, b"x" * protocol.MAX_FRAME_BYTES]),
    ],
    ids=lambda frame: f"{frame[:12]!r}, {len(frame)} bytes",
)
def test_a_frame_that_is_no_message_is_refused(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        Codec().from_client(frame)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_a_protocol_error(frame: bytes) -> None:
    codec = Codec()
    for decode in (codec.from_client, codec.from_worker):
        try:
            decode(frame)
        except ProtocolError:
            continue


def test_the_largest_payload_fits_a_frame() -> None:
    codec = Codec()
    frame = codec.encode(Submit(2**53 - 1, 2**53 - 1, b"x" * protocol.MAX_PAYLOAD_BYTES))
    assert len(frame) <= protocol.MAX_FRAME_BYTES
    codec.from_client(frame)
    events = Events(2**53 - 1, b"", tuple(range(2**53 - protocol.MAX_FINISHED, 2**53)))
    codec.from_worker(codec.encode(events))


def test_a_long_reason_is_cut() -> None:
    assert len(protocol.shorten("x" * 10_000)) == protocol.MAX_TEXT_CHARS
    assert protocol.shorten("short") == "short"
