"""Plain code that waits on a loop without holding it up."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import signal
import threading
import time
from functools import partial

import pytest

from plait.interpreter import tasks
from plait.interpreter.home import Home, Signal

place: contextvars.ContextVar[str] = contextvars.ContextVar("place", default="none")


def test_waiting_bodies_share_one_thread() -> None:
    async def main() -> list[int]:
        def body(i: int) -> int:
            tasks.await_only(asyncio.sleep(0.05))
            return i

        return await asyncio.gather(*(tasks.spawn(partial(body, i)) for i in range(500)))

    before = threading.active_count()
    start = time.monotonic()
    assert asyncio.run(main()) == list(range(500))
    assert time.monotonic() - start < 2
    assert threading.active_count() == before


def test_an_exception_of_the_awaited_is_raised_where_the_body_waits() -> None:
    async def fails() -> None:
        raise ValueError("mine")

    def body() -> str:
        with pytest.raises(ValueError, match="mine"):
            tasks.await_only(fails())
        return "on"

    assert tasks.run_here(lambda: tasks.spawn(body)) == "on"


def test_an_exception_of_the_body_comes_out_of_spawn() -> None:
    def body() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        tasks.run_here(lambda: tasks.spawn(body))


def test_a_cancellation_unwinds_the_body() -> None:
    unwound: list[bool] = []

    def body() -> None:
        try:
            tasks.await_only(asyncio.sleep(60))
        finally:
            unwound.append(True)

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(tasks.spawn(body), 0.05)

    asyncio.run(main())
    assert unwound == [True]


def test_context_variables_are_those_of_the_task() -> None:
    async def row(name: str) -> tuple[str, str]:
        place.set(name)

        def body() -> str:
            tasks.await_only(asyncio.sleep(0.01))
            seen = place.get()
            place.set(f"{name} changed")
            return seen

        return await tasks.spawn(body), place.get()

    async def main() -> list[tuple[str, str]]:
        return await asyncio.gather(*(asyncio.create_task(row(name)) for name in "ab"))

    assert asyncio.run(main()) == [("a", "a changed"), ("b", "b changed")]
    assert place.get() == "none"


def test_a_coroutine_is_driven_inside_a_body() -> None:
    async def coroutine() -> list[str]:
        wake = Home().signal()
        threading.Timer(0.02, wake.set).start()
        wake.wait()
        await asyncio.sleep(0.01)
        inner = list(await asyncio.gather(asyncio.sleep(0.01, "a"), asyncio.sleep(0, "b")))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.sleep(60), 0.01)
        return inner

    assert tasks.run_here(lambda: tasks.spawn(lambda: tasks.drive(coroutine()))) == ["a", "b"]


def test_a_signal_wakes_a_thread_and_a_body() -> None:
    def wait() -> bool:
        wake = Home().signal()
        threading.Timer(0.02, wake.set).start()
        wake.wait()
        return tasks.in_body()

    assert wait() is False
    assert tasks.run_here(lambda: tasks.spawn(wait)) is True


def test_a_signal_set_before_the_wait_or_after_the_loop_is_no_fault() -> None:
    signals: list[Signal] = []

    def body() -> None:
        wake = Home().signal()
        wake.set()
        wake.set()
        wake.wait()
        signals.append(wake)

    tasks.run_here(lambda: tasks.spawn(body))
    signals[0].set()


def test_the_private_loop_works_beside_a_running_one_and_inside_a_body() -> None:
    async def value() -> int:
        await asyncio.sleep(0.01)
        return threading.get_ident()

    async def main() -> tuple[int, int]:
        nested = await tasks.spawn(lambda: tasks.run_here(value))
        return tasks.run_here(value), nested

    beside, inside = asyncio.run(main())
    assert beside != threading.get_ident()
    assert inside == threading.get_ident()
    assert tasks.run_here(value) == threading.get_ident()


def test_the_private_loop_leaves_no_task_behind() -> None:
    ended: list[str] = []

    async def straggler() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("straggler")

    async def main() -> None:
        ended_task = asyncio.ensure_future(straggler())
        await asyncio.sleep(0)
        assert not ended_task.done()

    tasks.run_here(main)
    assert ended == ["straggler"]


def test_the_private_loop_is_cancelled_from_another_thread() -> None:
    def on_start(cancel: tasks.Cancel) -> None:
        threading.Timer(0.05, cancel).start()

    with pytest.raises(asyncio.CancelledError):
        tasks.run_here(lambda: asyncio.sleep(60), on_start)


def test_tasks_of_a_body_are_bodies_and_others_are_not() -> None:
    seen: dict[str, bool] = {}

    async def inner(name: str) -> None:
        seen[name] = tasks.in_body()

    async def coroutine() -> None:
        await asyncio.gather(inner("child"), nested())
        await asyncio.create_task(inner("named"), name="n")

    async def nested() -> None:
        await asyncio.create_task(inner("grandchild"))

    async def main() -> None:
        other = asyncio.get_running_loop().get_task_factory()
        body = tasks.spawn(lambda: tasks.drive(coroutine()), adopts_tasks=True)
        await asyncio.gather(body, inner("other"))
        assert asyncio.get_running_loop().get_task_factory() is other

    asyncio.run(main())
    assert seen == {"child": True, "grandchild": True, "named": True, "other": False}


def test_a_task_cancelled_before_its_first_step_leaves_no_warning() -> None:
    async def never() -> None:
        raise AssertionError

    async def coroutine() -> None:
        task = asyncio.create_task(never())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    tasks.run_here(lambda: tasks.spawn(lambda: tasks.drive(coroutine()), adopts_tasks=True))
    gc.collect()


@pytest.mark.parametrize("way", ["blocking", "loop"])
def test_an_interrupt_ends_the_wait(way: str) -> None:
    unwound: list[str] = []

    def body() -> None:
        try:
            Home().signal().wait()
        finally:
            unwound.append(way)

    # A process that was started in the background has the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT))
    main = threading.main_thread().ident or 0
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            body() if way == "blocking" else tasks.run_here(lambda: tasks.spawn(body))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert unwound == [way]
