"""What travels between a client and a worker: messages, version, limits.

A message is one frame of MessagePack, an array that starts with its tag. The payloads
of sessions are bytes that mean nothing here. A ROUTER adds the peer's identity in front.

    client                         worker
      Hello        ->
                   <-  Welcome     or Bye: another version, or stopping
      Open, Submit ->
                   <-  Events      answers; `finished` gives the credits back
                   <-  Refused     a segment, or a session, that the worker does not take
      Cancel, Close, Ping ->
                   <-  Heartbeat
      Bye          ->  or  <-  Bye
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec

# 2: gens with a JSON Schema or a grammar; 3: one constraint a gen, with parts and a registry;
# captures, and heal; 4: scores, values without quotes, kept stop strings, selects with options,
# what is known of a segment, a gen's tokens, drafts in the usage
VERSION: Final = 4

MAX_FRAME_BYTES: Final = 16 * 2**20  # ZMQ_MAXMSGSIZE: libzmq drops a peer that sends more
MAX_PAYLOAD_BYTES: Final = MAX_FRAME_BYTES - 4096  # leaves room for the other fields
MAX_FINISHED: Final = 65_536  # segments that one Events message gives back
MAX_TEXT_CHARS: Final = 4096

Id: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]
Sentence: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_TEXT_CHARS)]
Payload: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=MAX_PAYLOAD_BYTES)]
Finished: TypeAlias = Annotated[tuple[Id, ...], msgspec.Meta(max_length=MAX_FINISHED)]


class ProtocolError(ValueError):
    """A frame that is not one of ours: damaged, too large, or of a wrong type."""


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The common form of all messages."""


class Hello(Message, frozen=True, tag="hello"):
    """Ask to be served."""

    version: Count


class Open(Message, frozen=True, tag="open"):
    """Start a session under an id that the client has not used before."""

    session: Id
    payload: Payload


class Submit(Message, frozen=True, tag="submit"):
    """Send segment `seq` of a session; takes a credit until it is finished or refused."""

    session: Id
    seq: Id
    payload: Payload


class Cancel(Message, frozen=True, tag="cancel"):
    """Stop a part of a session; the payload says which."""

    session: Id
    payload: Payload


class Close(Message, frozen=True, tag="close"):
    """End a session; nothing comes for it any more, its credits are free at once."""

    session: Id


class Ping(Message, frozen=True, tag="ping"):
    """Say that the client lives."""


class Welcome(Message, frozen=True, tag="welcome"):
    """Accept a client.

    `credits` segments and `credit_bytes` bytes of payload may be unfinished at a time;
    one segment may always be.
    """

    version: Count
    epoch: Word
    credits: Count
    credit_bytes: Count
    heartbeat_s: Annotated[float, msgspec.Meta(gt=0, le=60)]
    description: Payload


class Events(Message, frozen=True, tag="events"):
    """Carry answers of a session, in order, and the segments that are now finished."""

    session: Id
    payload: Payload
    finished: Finished = ()


class Refused(Message, frozen=True, tag="refused"):
    """Refuse one segment; or, without `seq`, end the session."""

    session: Id
    seq: Id | None
    code: Word
    message: Sentence


class Heartbeat(Message, frozen=True, tag="heartbeat"):
    """Say that the worker lives; a `num_steps` that stands still tells of a stuck engine."""

    epoch: Word
    num_steps: Count
    num_running: Count
    num_waiting: Count


class Bye(Message, frozen=True, tag="bye"):
    """End the connection, in either direction."""

    epoch: Word
    reason: Sentence


ClientMessage: TypeAlias = Hello | Open | Submit | Cancel | Close | Ping | Bye
WorkerMessage: TypeAlias = Welcome | Events | Refused | Heartbeat | Bye
_Message = TypeVar("_Message")


class Codec:
    """Encode messages, and decode what a peer sent. One thread owns it."""

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._client = msgspec.msgpack.Decoder(ClientMessage)
        self._worker = msgspec.msgpack.Decoder(WorkerMessage)

    def encode(self, message: ClientMessage | WorkerMessage) -> bytes:
        """Give the message's frame."""
        return self._encoder.encode(message)

    def from_client(self, frame: bytes) -> ClientMessage:
        """Decode a client's frame. Raises: ProtocolError."""
        return _decode(self._client, frame)

    def from_worker(self, frame: bytes) -> WorkerMessage:
        """Decode a worker's frame. Raises: ProtocolError."""
        return _decode(self._worker, frame)


def shorten(text: str) -> str:
    """Cut `text` to what a Sentence holds."""
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 3] + "..."


def _decode(decoder: msgspec.msgpack.Decoder[_Message], frame: bytes) -> _Message:
    if len(frame) > MAX_FRAME_BYTES:
        raise ProtocolError(f"a frame of {len(frame)} bytes; the limit is {MAX_FRAME_BYTES}")
    try:
        return decoder.decode(frame)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"not a message of version {VERSION}: {error}") from error
