"""How bodies wait: as greenlets on an event loop, or by blocking the thread they run in.

A body is ordinary Python, and waits in the middle of an expression. Inside `spawn` a wait
switches to the coroutine that drives the body, which awaits in its place; so one thread
holds any number of waiting bodies. Outside of it a wait blocks the thread. asyncio is
imported where it is used: it costs a third of what `import plait` may take.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

import greenlet  # type: ignore[import-untyped]

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
Cancel: TypeAlias = Callable[[], None]
MakeCoroutine: TypeAlias = Callable[[], Coroutine[Any, Any, T]]


class _Body(greenlet.greenlet):  # type: ignore[misc]
    """A body under `spawn`; what it switches to its parent is awaited there."""


class _Passed(Generic[T]):
    """Hand what a coroutine yielded on to the loop, as if it were awaited in the open."""

    def __init__(self, yielded: object) -> None:
        self._yielded = yielded

    def __await__(self) -> Generator[object, Any, T]:
        sent: T = yield self._yielded
        return sent


def in_body() -> bool:
    """Say whether the caller runs inside `spawn`, so that its waits hold up nobody else."""
    return isinstance(greenlet.getcurrent(), _Body)


async def spawn(body: Callable[[], T], *, adopts_tasks: bool = False) -> T:
    """Run plain code on the running loop; `await_only` suspends it, not the loop.

    An exception that the loop raises here, such as a cancellation, is raised in the body
    where it waits. Context variables are those of the task. With `adopts_tasks`, tasks that
    the body starts (`asyncio.gather`) may wait like the body itself.
    """
    current = greenlet.getcurrent()
    task = _Body(body, current)
    task.gr_context = current.gr_context
    running = _adopting if adopts_tasks else nullcontext
    with running():
        step: object = task.switch()
    while not task.dead:
        try:
            value = await cast(Awaitable[object], step)
        except BaseException as error:
            with running():
                step = task.throw(error)
        else:
            with running():
                step = task.switch(value)
    return cast(T, step)


@contextmanager
def _adopting() -> Iterator[None]:
    """Let every task that starts inside, and those that they start, be a body of its own.

    The loop's factory is ours only while the body runs: other tasks never see it.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    factory = loop.get_task_factory()

    def make(coroutine: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Future[Any]:
        if factory is not None:
            return factory(loop, coroutine, **options)
        return asyncio.Task(coroutine, loop=loop, **options)

    def adopt(
        _: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Future[Any]:
        task = make(spawn(partial(drive, coroutine), adopts_tasks=True), **options)
        # A task that is cancelled before its first step leaves the coroutine unawaited.
        task.add_done_callback(lambda _: coroutine.close())
        return task

    loop.set_task_factory(adopt)  # type: ignore[arg-type]  # it takes a context since 3.11
    try:
        yield
    finally:
        loop.set_task_factory(factory)


def await_only(awaitable: Awaitable[T]) -> T:
    """Await something in plain code that runs inside `spawn`."""
    body = greenlet.getcurrent()
    assert isinstance(body, _Body)
    assert body.parent is not None
    return cast(T, body.parent.switch(awaitable))


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run an `async def` body inside `spawn`, so that `s["x"]` needs no await in it either."""
    try:
        yielded = coroutine.send(None)
        while True:
            try:
                value = await_only(_Passed[object](yielded))
            except BaseException as error:
                yielded = coroutine.throw(error)
            else:
                yielded = coroutine.send(value)
    except StopIteration as stop:
        return cast(T, stop.value)


def call_soon(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *args: object) -> None:
    """Call something on a loop from any thread; nothing if the loop is closed."""
    try:
        loop.call_soon_threadsafe(call, *args)
    except RuntimeError:
        # A closed loop has no waiters left; anything else is ours and must be seen.
        if not loop.is_closed():
            raise


def run_here(make: MakeCoroutine[T], on_start: Callable[[Cancel], None] | None = None) -> T:
    """Run a coroutine to its end from plain code, on a private loop, and give its result.

    Inside `spawn` the loop that runs there is used. If a loop runs in this thread and we
    are not inside `spawn`, the private loop gets a thread of its own, and this one blocks.
    `on_start` gets a function that cancels the coroutine from any thread.
    """
    if in_body():
        return await_only(make())
    if _is_loop_running():
        return _run_in_thread(make)
    return _run_private(make, on_start)


def _is_loop_running() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_private(make: MakeCoroutine[T], on_start: Callable[[Cancel], None] | None) -> T:
    # Not asyncio.run: that one also unsets the thread's current loop, which is the caller's.
    import asyncio

    loop = asyncio.new_event_loop()
    try:
        task = loop.create_task(make())
        if on_start is not None:
            on_start(lambda: call_soon(loop, task.cancel))
        return loop.run_until_complete(task)
    finally:
        close_loop(loop)


def close_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Unwind what is left on a private loop, and close it."""
    try:
        _finish(loop)
    finally:
        loop.close()


def _finish(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    # Before the loop turns again: after an interrupt many may be ready to go on.
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()

    async def unwind() -> None:
        await asyncio.gather(*left, return_exceptions=True)
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()

    ending = loop.create_task(unwind())
    while not ending.done():
        try:
            loop.run_until_complete(ending)
        except BaseException as error:
            # A task that ends by an interrupt also stops the loop; the others still unwind.
            if not any(_has_raised(task, error) for task in left):
                raise


def _has_raised(task: asyncio.Task[Any], error: BaseException) -> bool:
    return task.done() and not task.cancelled() and task.exception() is error


def _run_in_thread(make: MakeCoroutine[T]) -> T:
    from concurrent.futures import Future

    answer: Future[T] = Future()
    cancels: list[Cancel] = []
    context = contextvars.copy_context()

    def work() -> None:
        try:
            answer.set_result(context.run(_run_private, make, cancels.append))
        except BaseException as error:
            answer.set_exception(error)

    thread = threading.Thread(target=work, name="plait-loop", daemon=True)
    thread.start()
    try:
        return answer.result()
    finally:
        for cancel in cancels:  # does nothing unless the wait was interrupted
            cancel()
        thread.join()
