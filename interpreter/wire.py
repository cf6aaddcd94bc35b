"""Nodes, events and settings as bytes: the payloads of a session's messages.

Nodes travel as the data of a graph's JSON, everything else by the fields of its
dataclass. What does not decode is refused by name; nothing here runs code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from ..lang.errors import GraphError
from ..lang.graph import Node
from ..lang.serialize import nodes_from_data, nodes_to_data
from ..runtime.errors import LinkError, RequestError
from ..runtime.protocol import MAX_PAYLOAD_BYTES
from .backend import Capabilities, Delta, Done, Failed, NodeEvent, SessionConfig, Started

MAX_NODES: Final = 2000  # in one message: the worker's loop must not be held up
EVENTS_BYTES: Final = 256 * 2**10  # larger lists of events are split

_Payload = TypeVar("_Payload")
_MALFORMED = (msgspec.DecodeError, ValueError, RecursionError)


class _Segment(msgspec.Struct, array_like=True):
    nodes: list[dict[str, object]]
    known: tuple[Done, ...] = ()


class _StartedMessage(msgspec.Struct, array_like=True, tag="started"):
    event: Started


class _DeltaMessage(msgspec.Struct, array_like=True, tag="delta"):
    event: Delta


class _DoneMessage(msgspec.Struct, array_like=True, tag="done"):
    event: Done


class _FailedMessage(msgspec.Struct, array_like=True, tag="failed"):
    event: Failed


_EventMessage = _StartedMessage | _DeltaMessage | _DoneMessage | _FailedMessage
_EVENTS = msgspec.msgpack.Decoder(list[_EventMessage])


def encode_nodes(nodes: Sequence[Node], known: Sequence[Done] = ()) -> bytes:
    """Give a segment's payload. Raises: RequestError if it cannot be sent."""
    if len(nodes) > MAX_NODES:
        raise _too_large(f"{len(nodes)} nodes", f"{MAX_NODES} nodes")
    try:
        payload = msgspec.msgpack.encode(_Segment(nodes_to_data(nodes), tuple(known)))
    except (ValueError, OverflowError) as error:
        raise RequestError("invalid_request", f"the segment cannot be sent: {error}") from error
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise _too_large(f"{len(payload)} bytes", f"{MAX_PAYLOAD_BYTES} bytes")
    return payload


def decode_nodes(payload: bytes) -> tuple[tuple[Node, ...], tuple[Done, ...]]:
    """Give a segment's nodes, and what is known of them. Raises: RequestError."""
    segment = _decode(payload, _Segment, "a segment")
    data = segment.nodes
    if not 0 < len(data) <= MAX_NODES:
        raise _too_large(f"{len(data)} nodes", f"1 to {MAX_NODES} nodes")
    try:
        return nodes_from_data(data), segment.known
    except (GraphError, *_MALFORMED, TypeError, KeyError) as error:
        raise RequestError("invalid_request", f"not a segment of a graph: {error}") from error


def encode_ids(nodes: Sequence[int]) -> bytes:
    """Give the payload of a Cancel."""
    return msgspec.msgpack.encode(list(nodes))


def decode_ids(payload: bytes) -> list[int]:
    """Give the nodes of a Cancel. Raises: RequestError."""
    return _decode(payload, list[int], "a list of nodes")


def encode_config(config: SessionConfig) -> bytes:
    """Give the payload of an Open."""
    return msgspec.msgpack.encode(config)


def decode_config(payload: bytes) -> SessionConfig:
    """Give a session's settings. Raises: RequestError."""
    return _decode(payload, SessionConfig, "a session's settings")


def encode_capabilities(capabilities: Capabilities) -> bytes:
    """Give the description that a client gets with its welcome."""
    return msgspec.msgpack.encode(capabilities)


def decode_capabilities(payload: bytes) -> Capabilities:
    """Give what the runtime can do. Raises: LinkError."""
    try:
        return msgspec.msgpack.decode(payload, type=Capabilities)
    except _MALFORMED as error:
        raise LinkError(f"the runtime describes itself in an unknown way: {error}") from error


def encode_events(events: Sequence[NodeEvent]) -> list[bytes]:
    """Give the payloads that carry `events`, in order.

    An event that is too large becomes the failure of its node.
    """
    payload = msgspec.msgpack.encode([_message(event) for event in events])
    if len(payload) <= EVENTS_BYTES:
        return [payload]
    if len(events) > 1:
        half = len(events) // 2
        return encode_events(events[:half]) + encode_events(events[half:])
    if len(payload) <= MAX_PAYLOAD_BYTES:
        return [payload]
    node = events[0].node
    message = f"its result has {len(payload)} bytes; the limit is {MAX_PAYLOAD_BYTES}"
    return encode_events([Failed(node, "internal", message, node)])


def decode_events(payload: bytes) -> list[NodeEvent]:
    """Give the events. Raises: LinkError."""
    try:
        return [message.event for message in _EVENTS.decode(payload)]
    except _MALFORMED as error:
        raise LinkError(f"the runtime sent events in an unknown form: {error}") from error


def _message(event: NodeEvent) -> _EventMessage:
    match event:
        case Started():
            return _StartedMessage(event)
        case Delta():
            return _DeltaMessage(event)
        case Done():
            return _DoneMessage(event)
        case Failed():
            return _FailedMessage(event)


def _decode(payload: bytes, kind: type[_Payload], name: str) -> _Payload:
    try:
        return msgspec.msgpack.decode(payload, type=kind)
    except _MALFORMED as error:
        raise RequestError("invalid_request", f"not {name}: {error}") from error


def _too_large(size: str, limit: str) -> RequestError:
    return RequestError("invalid_request", f"a segment of {size}; the limit is {limit}")
