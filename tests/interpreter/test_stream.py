"""Streams: events in order, text of one variable, leaving early, errors, refusals."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from plait import (
    ContextExceeded,
    Event,
    InvalidArgument,
    ProgramError,
    State,
    Stream,
    UnknownVariable,
    function,
    gen,
    scripted,
    select,
)
from plait.interpreter.backends.scripted import ScriptedBackend


def long_or_short(prompt: str) -> str:
    """Talk for ever after "long: ", else say hello."""
    return "abcdefgh" * 400 if "long: " in prompt else "hello"


@pytest.fixture
def backend() -> Iterator[ScriptedBackend]:
    opened = scripted(long_or_short)
    assert isinstance(opened, ScriptedBackend)
    yield opened
    opened.close()
    assert not stream_threads()


def stream_threads() -> list[str]:
    """The names of streams' threads that still live."""
    return [t.name for t in threading.enumerate() if t.name == "plait-stream"]


def wait_until(is_so: Callable[[], bool], seconds: float = 1.0) -> bool:
    """Wait until something is so, for at most `seconds`."""
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        time.sleep(0.005)
    return is_so()


def is_idle(backend: ScriptedBackend) -> bool:
    """Whether the engine runs nothing."""
    stats = backend.stats()
    return (stats.num_running, stats.num_waiting) == (0, 0)


def divide_by_zero(stream: Stream) -> None:
    """Fail in the middle of reading."""
    with stream:
        for event in stream:
            raise ZeroDivisionError(event.kind)


@function
def short(s: State) -> str:
    s += "say: " + gen("a", temperature=0, max_tokens=20)
    s += " or " + select("b", ["hello", "bye"])
    branches = s.fork(2)
    branches += "x" + gen("c", temperature=0, max_tokens=3)
    branches.join()
    return str(s["a"])


@function
def long(s: State) -> None:
    s += "long: " + gen("a", temperature=0, max_tokens=2000)


def test_events_tell_the_whole_run(backend: ScriptedBackend) -> None:
    stream = short.stream(backend=backend)
    events = list(stream)
    kinds = [(e.kind, e.branch, e.variable) for e in events if e.kind != "delta"]
    assert kinds[:4] == [
        ("start", "", "a"),
        ("end", "", "a"),
        ("start", "", "b"),
        ("end", "", "b"),
    ]
    assert {(k, b) for k, b, name in kinds if name == "c"} == {
        ("start", "0.0"),
        ("start", "0.1"),
        ("end", "0.0"),
        ("end", "0.1"),
    }
    deltas = [e.text for e in events if e.kind == "delta" and e.variable == "a"]
    assert "".join(deltas) == "hello"
    assert [e.value for e in events if e.kind == "end"] == ["hello", "hello", "hel", "hel"]
    assert stream.result.value == "hello"
    assert list(stream.result["c"]) == ["hel", "hel"]


def test_text_gives_one_variable(backend: ScriptedBackend) -> None:
    assert "".join(short.stream(backend=backend).text("a")) == "hello"
    assert "".join(short.stream(backend=backend).text("b")) == "hello"
    assert "".join(short.stream(backend=backend).text("c", branch="0.1")) == "hel"


def test_an_unknown_name_is_an_error_that_lists_the_known(backend: ScriptedBackend) -> None:
    with pytest.raises(UnknownVariable, match=r'"nope".*a, b, c \(branch 0.0\)'):
        list(short.stream(backend=backend).text("nope"))


@pytest.mark.parametrize("way", ["break", "close", "with", "raise", "text"])
def test_leaving_early_stops_the_request_and_the_thread(way: str, backend: ScriptedBackend) -> None:
    stream = long.stream(backend=backend)
    if way == "break":
        for i, _ in enumerate(stream):
            if i == 3:
                break
    elif way == "text":
        for _ in stream.text("a"):
            break
    elif way == "raise":
        with pytest.raises(ZeroDivisionError):
            divide_by_zero(stream)
    else:
        events = iter(stream)
        assert next(events).kind == "start"
        if way == "close":
            stream.close()
        else:
            with stream:
                next(events)
    assert wait_until(lambda: is_idle(backend))
    assert not stream_threads()
    assert backend.stats().num_output_tokens < 2000
    stream.close()


def test_a_stream_that_nobody_reads_never_starts(backend: ScriptedBackend) -> None:
    with long.stream(backend=backend) as stream:
        assert not stream_threads()
    with pytest.raises(ProgramError, match="no result yet"):
        _ = stream.result


def test_a_second_consumer_is_refused(backend: ScriptedBackend) -> None:
    with long.stream(backend=backend) as stream:
        first = iter(stream)
        next(first)
        with pytest.raises(InvalidArgument, match="already has a consumer"):
            iter(stream)
        with pytest.raises(InvalidArgument, match="already has a consumer"):
            stream.text("a")
        assert next(first).kind == "delta"


def test_the_programs_error_comes_after_its_events(backend: ScriptedBackend) -> None:
    @function
    def raises(s: State) -> None:
        s += "say: " + gen("a", temperature=0, max_tokens=20)
        assert s["a"] == "hello"
        raise ValueError("mine")

    kinds: list[str] = []
    with pytest.raises(ValueError, match="mine"):
        kinds.extend(event.kind for event in raises.stream(backend=backend))
    text: list[str] = []
    with pytest.raises(ValueError, match="mine"):
        text.extend(raises.stream(backend=backend).text("a"))
    assert "".join(text) == "hello"


def test_a_failed_node_gives_an_error_event_and_raises(backend: ScriptedBackend) -> None:
    @function
    def too_long(s: State) -> None:
        s += "x" * 5000 + gen("a")

    events: list[Event] = []
    with pytest.raises(ContextExceeded):
        events.extend(too_long.stream(backend=backend))
    assert [event.kind for event in events][-1] == "error"
    assert isinstance(events[-1].error, ContextExceeded)


def test_an_async_body_streams_from_plain_code(backend: ScriptedBackend) -> None:
    @function
    async def waits(s: State) -> None:
        s += "say: " + gen("a", temperature=0, max_tokens=20)
        assert s["a"] == "hello"
        await asyncio.sleep(60)

    start = time.monotonic()
    for event in waits.stream(backend=backend):
        if event.kind == "end":
            break
    assert wait_until(lambda: not stream_threads())
    assert time.monotonic() - start < 5


def test_a_body_that_swallows_errors_is_unwound_all_the_same(backend: ScriptedBackend) -> None:
    @function
    def stubborn(s: State) -> None:
        while True:
            try:
                s += "long: " + gen("a", temperature=0, max_tokens=50)
                assert s["a"]
            except Exception:
                pass

    with stubborn.stream(backend=backend) as stream:
        next(iter(stream))
    assert wait_until(lambda: not stream_threads())


def test_wrong_arguments_are_refused_before_the_stream(backend: ScriptedBackend) -> None:
    with pytest.raises(InvalidArgument, match="unknown: x"):
        short.stream(x=1, backend=backend)


# Async


def test_an_async_stream_gives_the_same(backend: ScriptedBackend) -> None:
    async def main() -> None:
        stream = short.astream(backend=backend)
        kinds = [event.kind async for event in stream if event.variable == "a"]
        assert kinds[0] == "start"
        assert kinds[-1] == "end"
        assert stream.result["b"] == "hello"
        text = [chunk async for chunk in short.astream(backend=backend).text("a")]
        assert "".join(text) == "hello"
        with pytest.raises(UnknownVariable):
            [chunk async for chunk in short.astream(backend=backend).text("nope")]

    asyncio.run(main())


@pytest.mark.parametrize("way", ["break", "aclose", "with", "cancel"])
def test_leaving_an_async_stream_early_stops_the_request(
    way: str, backend: ScriptedBackend
) -> None:
    async def read(stream: object) -> None:
        async for _ in long.astream(backend=backend):
            pass

    async def main() -> None:
        stream = long.astream(backend=backend)
        if way == "break":
            async for event in stream:
                if event.kind == "delta":
                    break
        elif way == "cancel":
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(read(stream), 0.1)
        elif way == "aclose":
            await anext(aiter(stream))
            await stream.aclose()
        else:
            async with stream:
                await anext(aiter(stream))
        end = time.monotonic() + 1
        while not is_idle(backend) and time.monotonic() < end:
            await asyncio.sleep(0.01)
        assert is_idle(backend)
        await asyncio.sleep(0.01)  # a dropped iterator is closed by a task of the loop's own
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
