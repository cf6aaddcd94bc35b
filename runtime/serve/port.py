"""A ROUTER on an asyncio loop: frames in by a callback, frames out without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, TypeAlias

import zmq

FRAMES_A_TURN = 256  # then other callbacks of the loop get theirs

Sent: TypeAlias = Literal["sent", "full", "gone"]
OnFrames: TypeAlias = Callable[[bytes, list[bytes]], None]


class Port:
    """Reads and writes one ROUTER. All calls on the loop's thread."""

    def __init__(self, socket: zmq.Socket[bytes], on_frames: OnFrames) -> None:
        self._socket = socket
        self._on_frames = on_frames
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_scheduled = False

    def start(self) -> None:
        """Begin to read, on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket.FD, self.drain)
        self._schedule()

    def stop(self) -> None:
        """Read no more. Idempotent."""
        if self._loop is not None:
            self._loop.remove_reader(self._socket.FD)
            self._loop = None

    def send(self, identity: bytes, frame: bytes) -> Sent:
        """Hand one frame to libzmq: "full" if this peer's pipe is, "gone" if the peer is."""
        try:
            self._socket.send_multipart((identity, frame), zmq.NOBLOCK)
        except zmq.Again:
            return "full"
        except zmq.ZMQError as error:
            if error.errno == zmq.EHOSTUNREACH:
                return "gone"
            raise
        finally:
            # The descriptor reports edges, and sending may swallow one: so look afterwards.
            if self._has_input():
                self._schedule()
        return "sent"

    def drain(self) -> None:
        """Hand over what has arrived, up to a turn's share."""
        self._is_scheduled = False
        for _ in range(FRAMES_A_TURN):
            if self._loop is None:
                return
            try:
                identity, *frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._on_frames(identity, frames)
        self._schedule()

    def _has_input(self) -> bool:
        events = self._socket.getsockopt(zmq.EVENTS)
        assert isinstance(events, int)
        return bool(events & zmq.POLLIN)

    def _schedule(self) -> None:
        if not self._is_scheduled and self._loop is not None:
            self._is_scheduled = True
            self._loop.call_soon(self.drain)
