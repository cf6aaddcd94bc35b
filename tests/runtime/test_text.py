"""Detokenisation and stop strings: the same text however the bytes are cut into tokens."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.text import Detokenizer, StopMatcher, TextStream

CORPUS = [
    "plain words",
    "👩\u200d👩\u200d👧\u200d👦 family 🏳️\u200d🌈 flag",
    "한국어 \u1112\u1161\u11ab decomposed",
    "e\u0301 n\u0303 combining \u0f71\u0f72",
    "a genuine \ufffd stays",
    "\x00\t\r\n\u2028 controls",
    "𐍈 𝄞 🙏",
]
INVALID = [
    b"\x80 lone \xff\xfe",
    b"\xe2\x82 cut \xf0\x9f\x99",
    b"\xed\xa0\x80 surrogate",
    b"\xc0\xaf overlong \xf4\x90\x80\x80",
    b"\xf0\x9f\x99\xe2\x82\xac \xe2",
]
BLOBS = [text.encode() for text in CORPUS] + INVALID


def tokens_of(blob: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = [0, *sorted({c % (len(blob) + 1) for c in cuts}), len(blob)]
    return [blob[a:b] for a, b in itertools.pairwise(places)]


def detokenise(tokens: Sequence[bytes]) -> str:
    detokenizer = Detokenizer(list(tokens))
    return "".join(map(detokenizer.push, range(len(tokens)))) + detokenizer.finish()


def run(
    tokens: Sequence[bytes | None], stops: Sequence[str], keeps_stop: bool = False
) -> tuple[str, TextStream]:
    stream = TextStream(list(tokens), stops, keeps_stop)
    text = "".join(stream.push(i) for i in range(len(tokens)))
    text += stream.finish()
    assert stream.finish() == ""
    return text, stream


def first_stop(text: str, stops: Sequence[str]) -> tuple[int, str] | None:
    """Give the definition: read character by character, longest stop that is complete first."""
    for end in range(1, len(text) + 1):
        ending = [stop for stop in stops if text[:end].endswith(stop)]
        if ending:
            stop = max(ending, key=len)
            return end - len(stop), stop
    return None


@pytest.mark.parametrize("blob", BLOBS)
def test_every_two_cuts_give_the_text_of_the_whole(blob: bytes) -> None:
    whole = blob.decode("utf-8", "replace")
    for first in range(len(blob) + 1):
        for second in range(first, len(blob) + 1):
            assert detokenise([blob[:first], blob[first:second], blob[second:]]) == whole


@settings(derandomize=True, max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(BLOBS), st.binary(max_size=6)), max_size=4).map(b"".join),
    st.lists(st.integers(0, 200), max_size=12),
)
def test_any_bytes_cut_anyhow_equal_the_decoding_of_the_whole(blob: bytes, cuts: list[int]) -> None:
    assert detokenise(tokens_of(blob, cuts)) == blob.decode("utf-8", "replace")
    assert detokenise([bytes((b,)) for b in blob]) == blob.decode("utf-8", "replace")


def test_a_character_comes_when_it_is_whole_and_invalid_bytes_at_once() -> None:
    detokenizer = Detokenizer([b"\xf0\x9f", b"\x99\x8f!", b"\xff", b"\xe2"])
    assert [detokenizer.push(i) for i in range(4)] == ["", "🙏!", "\ufffd", ""]
    assert detokenizer.is_mid_character
    assert detokenizer.finish() == "\ufffd"


def test_ids_without_bytes_and_out_of_range_add_nothing() -> None:
    detokenizer = Detokenizer([b"a", None])
    assert [detokenizer.push(i) for i in (0, 1, 2, -1, 0)] == ["a", "", "", "", "a"]


def test_a_stop_is_cut_off_across_token_borders() -> None:
    text, stream = run([b"one\n", b"\nEN", b"D", b" more"], ["\n\nEND"])
    assert (text, stream.stop_reason, stream.is_stopped) == ("one", "\n\nEND", True)
    assert (stream.num_kept, stream.tail) == (0, "one")


def test_only_what_may_become_a_stop_is_held_back() -> None:
    stream = TextStream([b"so a", b"b", b"a", b"bc", b"x"], ["abcd", "cx"])
    assert [stream.push(i) for i in range(4)] == ["so ", "", "ab", ""]
    assert stream.push(4) == "ab"
    assert stream.stop_reason == "cx"


def test_the_stop_that_is_complete_first_wins_then_the_longest() -> None:
    assert run([b"xabcd"], ["abcd", "bc"])[0] == "xa"
    assert run([b"xabc"], ["c", "bc", "zbc"])[0] == "xa"
    assert run([b"xab"], ["a", "ab"])[1].stop_reason == "a"


def test_a_stop_in_the_middle_of_a_token_leaves_its_start_as_the_tail() -> None:
    text, stream = run([b"keep", b" this STOP that"], ["STOP"])
    assert text == "keep this "
    assert (stream.num_kept, stream.tail) == (1, " this ")


def test_a_stop_at_a_border_keeps_the_tokens_before_it() -> None:
    _, stream = run([b"a", None, b"b", b"STOP"], ["STOP"])
    assert (stream.num_kept, stream.tail) == (3, "")


def test_a_token_that_ends_inside_a_character_is_kept_only_if_nothing_is_cut() -> None:
    tokens = [b"a", b"\xf0\x9f", b"\x99\x8f;", b"\xf0\x9f"]
    _, stopped = run(tokens, [";"])
    assert (stopped.num_kept, stopped.tail) == (1, "🙏")
    text, whole = run(tokens, ["zzz"])
    assert (text, whole.num_kept, whole.tail) == ("a🙏;\ufffd", 4, "")


def test_nothing_is_read_after_a_stop() -> None:
    stream = TextStream([b"a.", b"b"], ["."])
    assert stream.push(0) == "a"
    assert (stream.push(1), stream.finish(), stream.num_kept) == ("", "", 0)


@pytest.mark.parametrize("text", ["", "ab", "aab"])
def test_held_text_comes_out_at_the_end(text: str) -> None:
    assert run([text.encode()], ["aabb"])[0] == text


TEXTS = st.text(alphabet="ab🙏é\ufffd", max_size=16)


@settings(derandomize=True, max_examples=400, deadline=None)
@given(
    st.lists(st.one_of(TEXTS.map(str.encode), st.binary(max_size=2)), max_size=5).map(b"".join),
    st.lists(st.text(alphabet="ab🙏é\ufffd", min_size=1, max_size=4), max_size=4),
    st.lists(st.integers(0, 60), max_size=12),
)
def test_streams_equal_the_definition(blob: bytes, stops: list[str], cuts: list[int]) -> None:
    tokens = tokens_of(blob, cuts)
    whole = blob.decode("utf-8", "replace")
    found = first_stop(whole, stops)
    for keeps_stop in (False, True):
        text, stream = run(tokens, stops, keeps_stop)
        end = len(whole) if found is None else found[0] + len(found[1]) * keeps_stop
        assert text == whole[:end]
        assert stream.stop_reason == (None if found is None else found[1])
        assert detokenise(tokens[: stream.num_kept]) + stream.tail == text


@settings(derandomize=True, max_examples=300, deadline=None)
@given(
    TEXTS.filter(bool).map(str.encode),
    TEXTS.map(str.encode),
    st.lists(st.text(alphabet="ab🙏é", min_size=1, max_size=3), max_size=3),
    st.lists(st.integers(0, 60), max_size=12),
)
def test_bytes_that_are_left_out_are_in_no_text_and_in_no_stop(
    head: bytes, blob: bytes, stops: list[str], cuts: list[int]
) -> None:
    tokens = tokens_of(head + blob, cuts)
    stream = TextStream(tokens, stops)
    stream.skip(len(head))
    text = "".join(stream.push(i) for i in range(len(tokens))) + stream.finish()
    expected, plain = run([blob], stops)
    assert (text, stream.stop_reason) == (expected, plain.stop_reason)
    kept = b"".join(tokens[: stream.num_kept])
    assert not kept or kept.startswith(head)
    assert kept.removeprefix(head).decode() + stream.tail == text


def test_no_token_is_kept_before_the_bytes_left_out_are_whole() -> None:
    stream = TextStream([b"a", b"bc", b"x."], ["."])
    stream.skip(3)
    assert (stream.push(0), stream.num_kept) == ("", 0)
    assert (stream.push(1), stream.num_kept) == ("", 2)
    assert (stream.push(2), stream.num_kept, stream.tail) == ("x", 2, "x")


@settings(derandomize=True, max_examples=100, deadline=None)
@given(TEXTS, st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=3))
def test_what_was_shown_never_holds_the_start_of_a_stop(text: str, stops: list[str]) -> None:
    blob = text.encode()
    stream = TextStream([bytes((b,)) for b in blob], stops)
    shown = ""
    for i in range(len(blob)):
        shown += stream.push(i)
        read = blob[: i + 1].decode("utf-8", "ignore")
        may_stop = [s[:n] for s in stops for n in range(1, len(s)) if read.endswith(s[:n])]
        if not stream.is_stopped:
            assert len(read) - len(shown) == max(map(len, may_stop), default=0)


def test_a_stop_of_many_equal_letters_costs_linear_time() -> None:
    matcher = StopMatcher(["a" * 5000 + "b"])
    assert matcher.feed("a" * 200_000) is None
    assert matcher.held_len == 5000
