"""The port looks for input after it has sent, and only where there is some."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
import zmq

from plait.runtime.serve.port import Port


class FakeSocket:
    """A ROUTER whose descriptor never reports: what is read was looked for."""

    def __init__(self) -> None:
        self.FD = 0
        self.arrived: list[list[bytes]] = []
        self.num_reads = 0
        self.failure: zmq.ZMQError | None = None

    def getsockopt(self, option: int) -> int:
        assert option == zmq.EVENTS
        return zmq.POLLOUT | (zmq.POLLIN if self.arrived else 0)

    def send_multipart(self, frames: tuple[bytes, bytes], flags: int) -> None:
        if self.failure is not None:
            raise self.failure

    def recv_multipart(self, flags: int) -> list[bytes]:
        self.num_reads += 1
        if not self.arrived:
            raise zmq.Again
        return self.arrived.pop(0)


async def _started(socket: FakeSocket, got: list[bytes], patch: pytest.MonkeyPatch) -> Port:
    loop = asyncio.get_running_loop()
    patch.setattr(loop, "add_reader", lambda *_: None)
    patch.setattr(loop, "remove_reader", lambda *_: None)
    port = Port(cast("zmq.Socket[bytes]", socket), lambda identity, _: got.append(identity))
    port.start()
    await asyncio.sleep(0)
    return port


@pytest.mark.parametrize(
    "failure", [None, zmq.Again(), zmq.ZMQError(zmq.EHOSTUNREACH)], ids=["sent", "full", "gone"]
)
def test_a_message_whose_edge_a_send_swallowed_is_read(
    failure: zmq.ZMQError | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> list[bytes]:
        socket, got = FakeSocket(), list[bytes]()
        port = await _started(socket, got, monkeypatch)
        socket.arrived.append([b"client", b"frame"])
        socket.failure = failure
        port.send(b"other", b"frame")
        await asyncio.sleep(0)
        port.stop()
        return got

    assert asyncio.run(run()) == [b"client"]


def test_a_send_without_input_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> int:
        socket = FakeSocket()
        port = await _started(socket, [], monkeypatch)
        before = socket.num_reads
        port.send(b"client", b"frame")
        await asyncio.sleep(0)
        port.stop()
        return socket.num_reads - before

    assert asyncio.run(run()) == 0
