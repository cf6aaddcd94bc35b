"""Streams: the events of one run as it happens, for one consumer, sync or async."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from ..lang.errors import Invalid, NodeError, ProgramError, Truncated
from .backend import Done, Failed, NodeEvent
from .events import Claim, Event, TextFilter, event_of, texts
from .result import Result
from .run import Call, Run
from .tasks import call_soon

if TYPE_CHECKING:
    import asyncio

# What follows the last event: the run's result, or what no run may keep (KeyboardInterrupt).
_Last: TypeAlias = Result | BaseException
_Item: TypeAlias = Sequence[NodeEvent] | _Last  # one wake for all that came together
_CLOSE_WAIT_S = 1.0


def _translate(run: Run, event: NodeEvent) -> Event | None:
    """Give an event as the consumer sees it. On the consumer's thread: values are read here."""
    error: NodeError | None = None
    parsed: object = None
    if run.driver is not None:
        if isinstance(event, Failed):
            error = run.driver.error(event)
        elif isinstance(event, Done):
            try:
                parsed = run.driver.parsed(event)
            except (Truncated, Invalid) as fault:
                error = fault
    return event_of(run.tape.node(event.node), event, error, parsed)


def _translated(run: Run, events: Sequence[NodeEvent]) -> Iterator[Event]:
    for event in events:
        found = _translate(run, event)
        if found is not None:
            yield found


class _Ending:
    """Keep how a stream ended."""

    def __init__(self) -> None:
        self._result: Result | None = None

    def settle(self, last: _Last) -> None:
        """Keep the result. Raises: the run's error, if it failed."""
        if isinstance(last, BaseException):
            raise last
        self._result = last
        last.check()

    @property
    def result(self) -> Result:
        """Give the run's result. Raises: ProgramError before the stream's end."""
        if self._result is None:
            raise ProgramError("the stream has no result yet: iterate it to its end first")
        return self._result


class Stream:
    """Events of one run; the run starts with the first one that is asked for.

    `for event in stream` gives all of them, `stream.text("x")` the text of one variable; a
    stream has one consumer. Leaving it early, by `break`, by an exception, by `close` or at
    the end of a `with`, stops the run. The program's error is raised after the events that
    came before it. The body runs in a thread of its own, which ends with the stream.
    """

    def __init__(self, call: Call) -> None:
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._run = Run(call, is_streaming=True, sink=self._queue.put)
        self._thread: threading.Thread | None = None
        self._claim = Claim()
        self._ending = _Ending()

    def __iter__(self) -> Iterator[Event]:
        """Give all events. Raises: InvalidArgument for a second consumer."""
        self._claim.take()
        return self._events()

    def text(self, name: str, branch: str = "") -> Iterator[str]:
        """Give the text of one variable as it grows, until the program ends.

        Raises: UnknownVariable if the program ends without it; InvalidArgument for a second
        consumer.
        """
        self._claim.take()
        return texts(self._events(), TextFilter(name, branch))

    @property
    def result(self) -> Result:
        """Give the run's result. Raises: ProgramError before the stream's end."""
        return self._ending.result

    def close(self) -> None:
        """Stop the run, if it still runs, and wait for its thread. Idempotent.

        A body that is busy in its own code ends when it comes back to plait.
        """
        self._run.abandon()
        if self._thread is not None:
            self._thread.join(_CLOSE_WAIT_S)

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _events(self) -> Iterator[Event]:
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._work,), name="plait-stream", daemon=True
        )
        self._thread.start()
        try:
            while not isinstance(item := self._queue.get(), _Last):
                yield from _translated(self._run, item)
            self._ending.settle(item)
        finally:
            self.close()

    def _work(self) -> None:
        try:
            self._queue.put(self._run.execute())
        except BaseException as error:  # for the consumer, who waits for it
            self._queue.put(error)


class AsyncStream:
    """The async twin of `Stream`: `async for`, `async with`, `await stream.aclose()`.

    Needs no thread. It belongs to the loop on which it is iterated.
    """

    def __init__(self, call: Call) -> None:
        self._run = Run(call, is_streaming=True, sink=self._post)
        self._claim = Claim()
        self._ending = _Ending()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: asyncio.Queue[_Item] | None = None
        self._task: asyncio.Task[None] | None = None

    def __aiter__(self) -> AsyncIterator[Event]:
        """Give all events. Raises: InvalidArgument for a second consumer."""
        self._claim.take()
        return self._events()

    def text(self, name: str, branch: str = "") -> AsyncIterator[str]:
        """Give the text of one variable as it grows, until the program ends.

        Raises: UnknownVariable if the program ends without it; InvalidArgument for a second
        consumer.
        """
        self._claim.take()
        return self._texts(TextFilter(name, branch))

    @property
    def result(self) -> Result:
        """Give the run's result. Raises: ProgramError before the stream's end."""
        return self._ending.result

    async def aclose(self) -> None:
        """Stop the run, if it still runs, and wait until its body is unwound. Idempotent."""
        import asyncio

        self._run.abandon()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _events(self) -> AsyncIterator[Event]:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._queue = asyncio.Queue()
        self._task = self._loop.create_task(self._work())
        try:
            while not isinstance(item := await self._queue.get(), _Last):
                for event in _translated(self._run, item):
                    yield event
            self._ending.settle(item)
        finally:
            await self.aclose()

    async def _texts(self, chosen: TextFilter) -> AsyncIterator[str]:
        events = self._events()
        try:
            async for event in events:
                text = chosen.push(event)
                if text:
                    yield text
            chosen.finish()
        finally:
            await self.aclose()

    async def _work(self) -> None:
        last: _Last
        try:
            last = await self._run.aexecute()
        except BaseException as error:  # for the consumer, who waits for it
            last = error
        self._post(last)

    def _post(self, item: _Item) -> None:
        # Always through the loop, also from its own thread: so the order is that of the posts.
        if self._loop is not None and self._queue is not None:
            call_soon(self._loop, self._queue.put_nowait, item)
