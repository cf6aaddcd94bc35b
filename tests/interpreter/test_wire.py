"""Nodes, events and settings survive the wire; what is none of them is refused by name."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.interpreter import wire
from plait.interpreter.backend import (
    Capabilities,
    Delta,
    Done,
    Failed,
    GenTokens,
    NodeEvent,
    NodeMeta,
    NodeUsage,
    SessionConfig,
    Started,
)
from plait.lang.graph import Node, Where
from plait.lang.ops import (
    Constraint,
    Gen,
    RoleBegin,
    RoleEnd,
    Sampling,
    Score,
    Select,
    Source,
    Text,
    Value,
)
from plait.runtime.errors import LinkError, RequestError
from plait.runtime.protocol import MAX_PAYLOAD_BYTES

NODES = (
    Node(0, RoleBegin("user"), None, where=Where("essay.py", 12)),
    Node(1, Text("tell me 日本 😀\x00"), 0),
    Node(2, RoleEnd("user"), 1),
    Node(3, Gen("a", Sampling(max_tokens=3, stop=("\n", "x"), temperature=0.5), seed=2**63 - 1), 2),
    Node(4, Gen(None, constraint=Constraint(regex="[0-9]+")), 3, branch="0.1/2.3"),
    Node(5, Select("b", ("yes", "no"), "greedy_token_selection"), 3, branch="0.0"),
    Node(6, Value(Source(3)), 5, (3,), "0.0"),
    Node(7, Select("c", ("a",), top=2, abstain_below=0.5), 6, branch="0.0"),
    Node(8, Select("d", ("a",), temperature=0.5, seed=3), 7, branch="0.0"),
    Node(9, Score("a"), 8, branch="0.0"),
    Node(10, Score(source=3), 2, (3,), "0.0"),
)
META = NodeMeta("stop", "\n", NodeUsage(1, 2, 3, 2, 0.5, 0.25, 0.125), {"yes": 0.75}, {"yes": -1.5})
KNOWN = (Done(3, "日本", META, tokens=GenTokens((1, 2**31 - 1), "\n", True)), Done(5, "yes", META))
EVENTS: list[NodeEvent] = [
    Started(3),
    Delta(3, "日本"),
    Done(3, "日本\n", META, value="日本"),
    Done(9, "", NodeMeta("stop", logprobs=(-0.5, -math.inf))),
    KNOWN[0],
    Failed(4, "bad_grammar", "no", 3),
]


def test_nodes_survive_the_wire() -> None:
    assert wire.decode_nodes(wire.encode_nodes(NODES, KNOWN)) == (NODES, KNOWN)


def test_events_survive_the_wire() -> None:
    payloads = wire.encode_events(EVENTS)
    assert len(payloads) == 1
    assert wire.decode_events(payloads[0]) == EVENTS


def test_settings_survive_the_wire() -> None:
    config = SessionConfig("run", 2**63 - 1, Sampling(stop=("a",), top_p=0.5, heal=False), True)
    assert wire.decode_config(wire.encode_config(config)) == config


def test_capabilities_survive_the_wire() -> None:
    capabilities = Capabilities("smollm2", 2048, True)
    assert wire.decode_capabilities(wire.encode_capabilities(capabilities)) == capabilities


def test_cancelled_nodes_survive_the_wire() -> None:
    assert wire.decode_ids(wire.encode_ids([3, 4])) == [3, 4]


def test_infinite_scores_survive_the_wire() -> None:
    done = Done(1, "x", NodeMeta(scores={"x": -math.inf}))
    assert wire.decode_events(wire.encode_events([done])[0]) == [done]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x80\x04.",
        b"\x91" * 5000,
        msgspec.msgpack.encode([]),
        msgspec.msgpack.encode({"nodes": []}),
        msgspec.msgpack.encode([1]),
        msgspec.msgpack.encode([{}]),
        msgspec.msgpack.encode([{"id": 0, "op": {"kind": "Shell", "text": "ls"}, "prev": None}]),
        wire.encode_nodes(NODES)[:-1],
        wire.encode_nodes([Node(0, Text("a"), 7)]),
        wire.encode_nodes([Node(1, Text("a"), None), Node(0, Text("b"), None)]),
        wire.encode_nodes([Node(0, Text("a"), None), Node(0, Text("b"), None)]),
    ],
    ids=lambda payload: repr(payload[:16]),
)
def test_a_payload_that_is_no_segment_is_refused(payload: bytes) -> None:
    with pytest.raises(RequestError, match="segment"):
        wire.decode_nodes(payload)


@pytest.mark.parametrize(
    "payload",
    [b"", b"\x01", msgspec.msgpack.encode({"id": "a"}), msgspec.msgpack.encode({"id": 1})],
)
def test_a_payload_that_is_no_settings_is_refused(payload: bytes) -> None:
    with pytest.raises(RequestError, match="settings"):
        wire.decode_config(payload)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.binary(max_size=100))
def test_random_bytes_raise_nothing_but_what_is_said(payload: bytes) -> None:
    for decode, error in (
        (wire.decode_nodes, RequestError),
        (wire.decode_config, RequestError),
        (wire.decode_ids, RequestError),
        (wire.decode_events, LinkError),
        (wire.decode_capabilities, LinkError),
    ):
        try:
            decode(payload)
        except error:
            continue


@pytest.mark.parametrize(
    "nodes",
    [
        [Node(0, Text("lone \ud800 surrogate"), None)],
        [Node(0, Gen("a", seed=2**70), None)],
        [Node(0, Text("x" * (MAX_PAYLOAD_BYTES + 1)), None)],
    ],
    ids=["surrogate", "large seed", "large text"],
)
def test_a_segment_that_cannot_be_sent_is_refused_here(nodes: list[Node]) -> None:
    with pytest.raises(RequestError):
        wire.encode_nodes(nodes)


def test_many_events_are_split_in_order() -> None:
    events: list[NodeEvent] = [Delta(i, "x" * 10_000) for i in range(100)]
    payloads = wire.encode_events(events)
    assert max(map(len, payloads)) <= wire.EVENTS_BYTES
    assert [event for payload in payloads for event in wire.decode_events(payload)] == events


def test_an_event_over_the_limit_fails_its_node() -> None:
    payloads = wire.encode_events([Started(7), Done(7, "x" * MAX_PAYLOAD_BYTES)])
    first, second = [event for payload in payloads for event in wire.decode_events(payload)]
    assert first == Started(7)
    assert isinstance(second, Failed)
    assert second.node == 7
