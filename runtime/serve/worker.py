"""The worker: a ROUTER between clients and a service.

It never trusts a frame: what does not decode is counted and dropped, what breaks a rule
is refused, and neither touches another client. It never waits for a client either: a
client that does not read has its own bounded queue, and is dropped when that is full.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import assert_never

from ..protocol import (
    VERSION,
    Bye,
    Cancel,
    Close,
    Codec,
    Heartbeat,
    Hello,
    Open,
    Ping,
    ProtocolError,
    Submit,
    Welcome,
    WorkerMessage,
    shorten,
)
from .api import Service
from .endpoint import Listener
from .limits import Tally, WorkerLimits
from .peer import Peer
from .port import Port

RETRY_S = 0.005  # how soon a full pipe is tried again


class Worker:
    """Serves clients until `stop`. Everything runs on the loop that runs `run`."""

    def __init__(
        self, listener: Listener, service: Service, limits: WorkerLimits | None = None
    ) -> None:
        self.epoch = secrets.token_hex(8)
        self._service = service
        self._limits = limits or WorkerLimits()
        self._tally = Tally()
        self._peers: dict[bytes, Peer] = {}
        self._codec = Codec()
        self._port = Port(listener.socket, self._on_frames)
        self._stopping = asyncio.Event()
        self._reason = ""  # why it stops
        self._has_retry = False

    @property
    def counts(self) -> Mapping[str, int]:
        """How often clients misbehaved, by kind: bad_frames, refused, dropped..."""
        return self._tally.counts

    @property
    def num_sessions(self) -> int:
        """Count the open sessions of all clients."""
        return sum(len(peer.sessions) for peer in self._peers.values())

    def stop(self, reason: str = "the runtime is stopping") -> None:
        """Let `run` end: every client gets a Bye with the reason, every session is closed."""
        self._reason = reason
        self._stopping.set()

    async def run(self) -> None:
        """Serve until `stop` is called."""
        self._port.start()
        try:
            while not self._stopping.is_set():
                self._beat()
                try:
                    await asyncio.wait_for(self._stopping.wait(), self._limits.heartbeat_s)
                except TimeoutError:
                    continue
        finally:
            for peer in tuple(self._peers.values()):
                self._post(peer, Bye(self.epoch, shorten(self._reason)))
                self._drop(peer, "")
                peer.close_all()
            self._port.stop()

    def _beat(self) -> None:
        self._port.drain()  # what has arrived counts as heard, however late this loop is
        now = asyncio.get_running_loop().time()
        stats = self._service.stats()
        beat = Heartbeat(self.epoch, stats.num_steps, stats.num_running, stats.num_waiting)
        for peer in tuple(self._peers.values()):
            if now - peer.last_heard_s > self._limits.silence_s:
                self._drop(peer, f"silent for over {self._limits.silence_s} s")
            elif not peer.outbox:  # what waits there says as much
                self._post(peer, beat)

    def _on_frames(self, identity: bytes, frames: list[bytes]) -> None:
        try:
            if len(frames) != 1:
                raise ProtocolError(f"{len(frames)} frames in a message; it has exactly 1")
            message = self._codec.from_client(frames[0])
        except ProtocolError as error:
            self._tally.count("bad_frames", f"dropped a message: {error}")
            return
        peer = self._peers.get(identity)
        if isinstance(message, Hello):
            self._on_hello(identity, message)
        elif peer is not None:
            peer.last_heard_s = asyncio.get_running_loop().time()
            self._on_message(peer, message)
        elif not isinstance(message, Bye):
            # A client of another worker that was here, or one that this one has dropped.
            self._turn_away(identity, "this runtime does not know the client; connect anew")

    def _on_message(self, peer: Peer, message: Open | Submit | Cancel | Close | Ping | Bye) -> None:
        match message:
            case Open():
                peer.open(message)
            case Submit():
                peer.submit(message)
            case Cancel():
                peer.cancel(message)
            case Close():
                peer.close(message.session)
            case Bye():
                self._drop(peer, "")
            case Ping():
                pass
            case _:
                assert_never(message)

    def _on_hello(self, identity: bytes, message: Hello) -> None:
        if message.version != VERSION:
            reason = (
                f"this runtime speaks version {VERSION} of the protocol, the client version "
                f"{message.version}; install the same plait on both sides"
            )
            self._turn_away(identity, reason)
            return
        peer = self._peers.get(identity)
        if peer is None:
            if len(self._peers) >= self._limits.clients:
                self._turn_away(identity, f"{len(self._peers)} clients are connected; no more fit")
                return
            peer = Peer(identity, self._service, self._limits, self._tally, self._post)
            self._peers[identity] = peer
        peer.last_heard_s = asyncio.get_running_loop().time()
        self._post(peer, self._welcome())

    def _welcome(self) -> Welcome:
        limits = self._limits
        return Welcome(
            VERSION,
            self.epoch,
            limits.credits,
            limits.credit_bytes,
            limits.heartbeat_s,
            self._service.describe(),
        )

    def _post(self, peer: Peer, message: WorkerMessage) -> None:
        if self._peers.get(peer.identity) is not peer:
            return
        peer.outbox.push(self._codec.encode(message))
        self._flush(peer)
        if peer.outbox.num_bytes > self._limits.outbox_bytes:
            self._drop(peer, f"over {self._limits.outbox_bytes} bytes that it does not read")
        elif peer.outbox:
            self._retry_soon()

    def _flush(self, peer: Peer) -> None:
        """Send what libzmq takes; drop a client that turns out to be gone."""
        while peer.outbox:
            sent = self._port.send(peer.identity, peer.outbox.first)
            if sent == "gone":
                self._drop(peer, "")
            if sent != "sent":
                return
            peer.outbox.pop()

    def _retry_soon(self) -> None:
        if not self._has_retry:
            self._has_retry = True
            asyncio.get_running_loop().call_later(RETRY_S, self._retry)

    def _retry(self) -> None:
        self._has_retry = False
        for peer in tuple(self._peers.values()):
            self._flush(peer)
        if any(peer.outbox for peer in self._peers.values()):
            self._retry_soon()

    def _turn_away(self, identity: bytes, reason: str) -> None:
        self._tally.count("turned_away", f"turned a client away: {reason}")
        self._port.send(identity, self._codec.encode(Bye(self.epoch, reason)))

    def _drop(self, peer: Peer, reason: str) -> None:
        """Forget a client and close its sessions; a reason means that it misbehaved.

        The sessions close a turn later: a service may be in the middle of sending.
        """
        if self._peers.pop(peer.identity, None) is None:
            return
        if reason:
            self._tally.count("dropped", f"dropped a client: {reason}")
        asyncio.get_running_loop().call_soon(peer.close_all)
