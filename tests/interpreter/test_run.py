"""Event loops of every kind."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from plait import Function, NodeError, Result, State, function, gen, scripted, set_default_backend
from plait.interpreter.backends.scripted import ScriptedBackend

from .programs import talk


@pytest.fixture(scope="module")
def backend() -> Iterator[ScriptedBackend]:
    opened = scripted(talk)
    assert isinstance(opened, ScriptedBackend)
    yield opened
    opened.close()


def in_use(backend: ScriptedBackend) -> int:
    """Count what live requests hold."""
    stats = backend.stats()
    return stats.num_running + stats.num_waiting + stats.num_locked_blocks


@function
def plain(s: State, q: str = "q") -> str:
    s += q + gen("a", max_tokens=6)
    s += s["a"] + gen("b", max_tokens=6)
    return str(s["b"])


@function
async def awaiting(s: State, q: str = "q") -> str:
    s += q + gen("a", max_tokens=6)
    await asyncio.sleep(0.001)
    s += s["a"] + gen("b", max_tokens=6)
    inner = await plain.arun(q, seed=1)
    return s["b"] if inner["a"] else ""


@function
def long(s: State) -> None:
    s += "long: " + gen("a", max_tokens=3000, temperature=0)
    assert s["a"]


@pytest.fixture(params=["plain", "async"])
def program(request: pytest.FixtureRequest, backend: ScriptedBackend) -> Iterator[Function]:
    """A program with a break, as a plain and as an async function; seeded."""
    set_default_backend(backend)
    yield (plain if request.param == "plain" else awaiting).options(seed=1)
    set_default_backend(None)


def test_asyncio_run_twice_in_one_process(program: Function) -> None:
    expected = program.run().text()
    for _ in range(2):
        assert asyncio.run(program.arun()).text() == expected


def test_a_plain_run_inside_a_running_loop(program: Function) -> None:
    async def main() -> tuple[Result, list[Result]]:
        return program.run(), program.run_batch([{}, {}])

    expected = program.run().text()
    one, batch = asyncio.run(main())
    assert one.text() == batch[0].text() == expected
    assert batch[1].text() != expected


def test_loops_in_two_threads(program: Function) -> None:
    texts: list[str] = []

    async def main() -> None:
        results = await asyncio.gather(*(program.arun() for _ in range(20)))
        texts.extend(result.text() for result in results)

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert texts == [program.run().text()] * 40


def test_the_async_twins_give_the_same(program: Function) -> None:
    rows = [("x",), ("y",), ("z",)]
    batch = [result.text() for result in program.run_batch(rows)]
    twin = asyncio.run(program.arun_batch(rows))
    assert [result.text() for result in twin] == batch
    assert asyncio.run(program.arun("x")).text() == batch[0]


def test_the_callers_loop_is_left_alone(program: Function) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        program.run()
        program.run_batch([{}])
        assert asyncio.get_event_loop_policy().get_event_loop() is loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@pytest.mark.parametrize("way", ["run", "batch"])
def test_a_cancelled_run_frees_its_request(way: str, backend: ScriptedBackend) -> None:
    async def main() -> None:
        program = long.options(backend=backend)
        awaited = program.arun() if way == "run" else program.arun_batch([{}] * 3)
        await asyncio.wait_for(awaited, 0.1)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(main())
    end = time.monotonic() + 1
    while in_use(backend) and time.monotonic() < end:
        time.sleep(0.01)
    assert not in_use(backend)


@pytest.mark.parametrize("way", ["run", "arun", "batch", "stream"])
def test_branches_of_an_async_body_run_side_by_side(way: str, backend: ScriptedBackend) -> None:
    log: list[str] = []

    @function
    async def gathers(s: State) -> list[str]:
        s += "q"
        forks = s.fork(3)

        async def work(i: int, branch: State) -> str:
            log.append(f"{i} starts")
            branch += gen("a", max_tokens=3)
            first = branch["a"]
            log.append(f"{i} has a")
            branch += gen("b", max_tokens=3)
            return str(first + branch["b"])

        return list(await asyncio.gather(*(work(i, branch) for i, branch in enumerate(forks))))

    program = gathers.options(backend=backend, seed=1)
    if way == "stream":
        stream = program.stream()
        assert {event.branch for event in stream} == {"0.0", "0.1", "0.2"}
        result = stream.result
    elif way == "batch":
        result = program.run_batch([{}])[0]
    else:
        result = program.run() if way == "run" else asyncio.run(program.arun())
    pairs = zip(result["a"], result["b"], strict=True)
    assert result.value == [a + b for a, b in pairs]
    assert log[:3] == ["0 starts", "1 starts", "2 starts"]


def test_a_failed_branch_of_a_gather_ends_the_run(backend: ScriptedBackend) -> None:
    @function
    async def gathers(s: State) -> None:
        async def work(branch: State, size: int) -> str:
            branch += "x" * size + gen("a", max_tokens=1000)
            return str(branch["a"])

        forks = s.fork(2)
        await asyncio.gather(work(forks[0], 5000), work(forks[1], 5))

    async def main() -> None:
        with pytest.raises(NodeError, match="4096"):
            await gathers.arun(backend=backend)

    asyncio.run(main())
    with pytest.raises(NodeError, match="4096"):
        gathers.run(backend=backend)
