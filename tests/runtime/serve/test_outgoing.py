"""What a client sends, and in which order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.protocol import Cancel, ClientMessage, Close, Ping, Submit
from plait.runtime.serve.outgoing import Outgoing


def drain(outgoing: Outgoing) -> list[ClientMessage]:
    sent: list[ClientMessage] = []
    while (message := outgoing.peek()) is not None:
        outgoing.pop()
        sent.append(message)
    return sent


def test_nothing_is_sent_on_credit_before_the_welcome() -> None:
    outgoing = Outgoing()
    outgoing.put(Submit(0, 0, b""))
    outgoing.put(Ping())
    assert drain(outgoing) == [Ping()]
    outgoing.grant(1, 100)
    assert drain(outgoing) == [Submit(0, 0, b"")]


def test_one_segment_may_be_larger_than_the_credit_in_bytes() -> None:
    outgoing = Outgoing()
    outgoing.grant(10, 100)
    for seq in range(2):
        outgoing.put(Submit(0, seq, b"x" * 101))
    assert len(drain(outgoing)) == 1
    outgoing.give_back(0, (0,))
    assert len(drain(outgoing)) == 1


def test_a_cancel_passes_what_waits_unless_it_means_that() -> None:
    outgoing = Outgoing()
    outgoing.grant(1, 100)
    outgoing.put(Submit(0, 0, b""))
    drain(outgoing)
    outgoing.put(Submit(0, 1, b""))
    outgoing.put(Cancel(0, b"first"), after=0)
    outgoing.put(Cancel(0, b"second"), after=1)
    assert drain(outgoing) == [Cancel(0, b"first")]
    outgoing.give_back(0, (0,))
    assert drain(outgoing) == [Submit(0, 1, b""), Cancel(0, b"second")]


def test_a_close_drops_what_waits_and_frees_the_credit() -> None:
    outgoing = Outgoing()
    outgoing.grant(1, 100)
    for session in range(3):
        outgoing.put(Submit(session, 0, b""))
    assert drain(outgoing) == [Submit(0, 0, b"")]
    outgoing.put(Close(1))
    outgoing.put(Close(0))
    assert drain(outgoing) == [Close(1), Close(0), Submit(2, 0, b"")]


def test_a_credit_that_is_given_back_twice_counts_once() -> None:
    outgoing = Outgoing()
    outgoing.grant(1, 100)
    outgoing.put(Submit(0, 0, b""))
    drain(outgoing)
    outgoing.give_back(0, (0, 0, 7))
    outgoing.give_back(5, (0,))
    for seq in (1, 2):
        outgoing.put(Submit(0, seq, b""))
    assert drain(outgoing) == [Submit(0, 1, b"")]


@settings(derandomize=True, max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=60),
    st.integers(1, 4),
    st.integers(1, 100),
)
def test_credits_are_kept_and_each_sessions_order_too(
    segments: list[tuple[int, int]], credits: int, credit_bytes: int
) -> None:
    outgoing = Outgoing()
    outgoing.grant(credits, credit_bytes)
    wanted: list[Submit] = []
    for session, size in segments:
        seq = sum(message.session == session for message in wanted)
        wanted.append(Submit(session, seq, b"x" * size))
        outgoing.put(wanted[-1])
    sent: list[Submit] = []
    while len(sent) < len(wanted):
        flight = [message for message in drain(outgoing) if isinstance(message, Submit)]
        assert 0 < len(flight) <= credits
        assert len(flight) == 1 or sum(len(m.payload) for m in flight) <= credit_bytes
        sent += flight
        for message in flight:
            outgoing.give_back(message.session, (message.seq,))
    assert sent == wanted
