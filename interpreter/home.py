"""Where the bodies of one run wait, and the loop that its tasks run on."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..lang.errors import ProgramError
from ..lang.where import place
from . import tasks

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class Home:
    """One run's place to wait. Made on the thread that the body runs in.

    Inside `tasks.spawn` a run shares the loop there, as one of its tasks. Elsewhere the body
    blocks its thread, until the run needs a loop: for the bodies of branches, tools or a time
    limit. From then on it has a private one, which turns while the body waits.
    """

    def __init__(self) -> None:
        self.num_tasks = 0  # that have not ended
        self._thread = threading.get_ident()
        self._is_private = not tasks.in_body()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._body: asyncio.Task[Any] | None = None  # the task of the run's body
        self._turning: asyncio.Future[Any] | None = None  # what the body waits for
        if not self._is_private:
            import asyncio

            self._loop = asyncio.get_running_loop()
            self._body = asyncio.current_task()

    @property
    def is_private(self) -> bool:
        """Say whether the body blocks its thread, or turns a loop of its own."""
        return self._is_private

    @property
    def turns(self) -> bool:
        """Say whether the caller's wait lets the tasks of this run go on."""
        if tasks.in_body():
            return _running_loop() is self._loop
        return self._is_private and self._loop is not None and self._is_own_thread()

    def loop(self) -> asyncio.AbstractEventLoop:
        """Give the loop of the run; it gets one if it had none.

        Raises: ProgramError on another thread than the body's.
        """
        if not (self._is_own_thread() and (self._is_private or tasks.in_body())):
            raise ProgramError(
                f"{place()}branches with bodies, tools and time limits belong to the thread or "
                "task that the program runs in; call this there"
            )
        if self._loop is None:
            import asyncio

            self._loop = asyncio.new_event_loop()
        return self._loop

    def start(
        self, work: Callable[[], T], on_end: Callable[[asyncio.Task[T]], None]
    ) -> asyncio.Task[T]:
        """Run plain code as a task of its own, from the next wait on; `on_end` follows it."""
        import asyncio

        # Not by create_task: a body's loop may have a factory, which adopts what it makes.
        loop = self.loop()
        task = asyncio.Task(tasks.spawn(work), loop=loop)
        self.num_tasks += 1

        def ended(task: asyncio.Task[T]) -> None:
            self.num_tasks -= 1
            on_end(task)

        task.add_done_callback(ended)
        return task

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait for something of the loop: in a body, or on the run's own thread."""
        return tasks.await_only(awaitable) if tasks.in_body() else self.turn(awaitable)

    def drive(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in place; it waits as a body does, and so do the tasks it starts."""
        self.loop()  # refuses another thread before the coroutine is made
        return self.wait(tasks.spawn(partial(tasks.drive, coroutine), adopts_tasks=True))

    def turn(self, awaitable: Awaitable[T]) -> T:
        """Turn the private loop until this is done. Raises: CancelledError at `interrupt`."""
        import asyncio

        loop = self.loop()
        with _set_aside():
            self._turning = future = asyncio.ensure_future(awaitable, loop=loop)
            try:
                return loop.run_until_complete(future)
            finally:
                self._turning = None

    def signal(self) -> Signal:
        """Give a signal for the caller to wait for."""
        if tasks.in_body():
            return Signal(_running_loop().create_future(), tasks.await_only)
        if self.turns:
            return Signal(self.loop().create_future(), self.turn)
        return Signal()

    def soon(self, call: Callable[[], object]) -> None:
        """Call something once all that is ready has run."""
        self.loop().call_soon(call)

    def later(self, seconds: float, call: Callable[[], object]) -> asyncio.TimerHandle:
        """Call something some seconds from now, while the run waits."""
        return self.loop().call_later(seconds, call)

    def interrupt(self) -> None:
        """Cancel what the body waits for. On the loop; of a private one from any thread."""
        if self._is_private:
            if self._loop is not None:
                tasks.call_soon(self._loop, self._cancel_turn)
        elif self._body is not None:
            self._body.cancel()

    def close(self) -> None:
        """Give a private loop back. Idempotent; nothing interrupts the body any more."""
        self._body = None
        if self._is_private and self._loop is not None:
            loop, self._loop = self._loop, None
            with _set_aside():
                tasks.close_loop(loop)

    def _cancel_turn(self) -> None:
        if self._turning is not None:
            self._turning.cancel()

    def _is_own_thread(self) -> bool:
        return threading.get_ident() == self._thread


class Signal:
    """One wake-up for one waiter; `set` may come from any thread, at any time.

    Without a future a wait blocks the thread.
    """

    __slots__ = ("_event", "_future", "_wait")

    def __init__(
        self,
        future: asyncio.Future[None] | None = None,
        wait: Callable[[asyncio.Future[None]], None] | None = None,
    ) -> None:
        self._future = future
        self._wait = wait
        self._event = threading.Event() if future is None else None

    def set(self) -> None:
        """Wake the waiter; idempotent."""
        set_all((self,))

    def wait(self) -> None:
        """Wait for `set`."""
        if self._event is not None:
            self._event.wait()
        else:
            assert self._future is not None
            assert self._wait is not None
            self._wait(self._future)


def set_all(signals: Iterable[Signal]) -> None:
    """Set signals; those of one loop by one call, however many they are."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for signal in signals:
        if signal._event is not None:
            signal._event.set()
        elif signal._future is not None:
            by_loop.setdefault(signal._future.get_loop(), []).append(signal._future)
    for loop, futures in by_loop.items():
        tasks.call_soon(loop, _resolve, futures)


def _resolve(futures: Iterable[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


def _running_loop() -> asyncio.AbstractEventLoop:
    import asyncio

    return asyncio.get_running_loop()


@contextmanager
def _set_aside() -> Iterator[None]:
    """Let a loop of ours turn where the caller's own may be running, as in a notebook.

    By the functions that asyncio has for makers of loops; the caller's loop stands still.
    """
    import asyncio

    loop = asyncio._get_running_loop()
    if loop is None:
        yield
        return
    task = asyncio.current_task(loop)
    if task is not None:
        asyncio._leave_task(loop, task)
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)
        if task is not None:
            asyncio._enter_task(loop, task)
