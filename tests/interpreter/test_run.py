"""Event loops of every kind, and graphs that run whole."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from plait import (
    Function,
    Graph,
    InvalidArgument,
    NodeError,
    Result,
    State,
    assistant,
    function,
    gen,
    run_graph,
    scripted,
    select,
    set_default_backend,
    user,
)
from plait.interpreter.backends.scripted import ScriptedBackend


def talk(prompt: str) -> str:
    """Talk long after "long: ", else say what the prompt's length makes of it."""
    return "abcdefgh" * 400 if "long: " in prompt else f"{len(prompt) % 7} or so."


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
    return s["b"]


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
            return first + branch["b"]

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
            return branch["a"]

        forks = s.fork(2)
        await asyncio.gather(work(forks[0], 5000), work(forks[1], 5))

    async def main() -> None:
        with pytest.raises(NodeError, match="4096"):
            await gathers.arun(backend=backend)

    asyncio.run(main())
    with pytest.raises(NodeError, match="4096"):
        gathers.run(backend=backend)


# Whole graphs


@function
def static(s: State, q: str, n: int = 3) -> None:
    s += user(q + " and " + q)
    with s.assistant():
        s += "I say " + gen("a", max_tokens=9)
        forks = s.fork(n)
        forks += lambda i: f" ({i}) " + gen("b", max_tokens=5, temperature=1)
        forks[0] += select("c", ["yes", "no", "not"])
        forks.join()
    s += user("again: " + s.ref("a"))
    s += assistant(gen("d", regex="[a-z]{3}", temperature=1) + " and " + gen("e", max_tokens=4))


@function
def adjacent(s: State, q: str) -> None:
    s += ""
    s += q
    s += q + "" + gen("a", max_tokens=3) + "x" + "y"
    s += s.ref("a") + s.ref("a")
    s += "z" + gen("b", max_tokens=3)


@function
def nested(s: State, q: str) -> None:
    s += q
    for i, outer in enumerate(s.fork(2)):
        outer += f"{i}" + gen("o", max_tokens=3)
        for inner in outer.fork(2):
            inner += "/" + gen("i", max_tokens=3)
    with s.copy() as draft:
        draft += gen("draft", max_tokens=3)
    s += gen("end", max_tokens=3)


@function
def quotes_the_join(s: State, q: str) -> None:
    s += q
    forks = s.fork(3)
    forks += gen("o", max_tokens=4)
    joined = forks.join()
    for value in joined["o"]:
        s += f"they said {value}, "
    s += gen("end", max_tokens=3)


STATIC = [static, adjacent, nested, quotes_the_join]
each_static = pytest.mark.parametrize("program", STATIC, ids=lambda program: program.name)


def shown(result: Result) -> dict[str, object]:
    """Everything of a result that a program made."""
    values = {name: result[name] for name in result.variables}
    return {"text": result.text(), "messages": result.messages(), "values": values}


@each_static
def test_a_trace_run_whole_equals_the_run(program: Function, backend: ScriptedBackend) -> None:
    for seed in range(3):
        run = program.run("Hello {there}", backend=backend, seed=seed)
        whole = run_graph(program.trace(q="Hello {there}"), backend=backend, seed=seed)
        assert shown(whole) == shown(run)


@each_static
def test_a_trace_with_open_inputs_takes_them_later(
    program: Function, backend: ScriptedBackend
) -> None:
    run = program.run("Hello", backend=backend, seed=4)
    whole = run_graph(program.trace(), inputs={"q": "Hello"}, backend=backend, seed=4)
    assert shown(whole) == shown(run)


@each_static
def test_a_recorded_graph_repeats_its_run(program: Function, backend: ScriptedBackend) -> None:
    run = program.run("Hello", backend=backend)
    again = run_graph(run.graph, backend=backend, seed=run.seed)
    assert shown(again) == shown(run)


def test_breaks_do_not_change_the_result(backend: ScriptedBackend) -> None:
    @function
    def with_breaks(s: State, q: str) -> None:
        s += q
        assert len(s.text()) == len(q)
        s += q + gen("a", max_tokens=3)
        assert s["a"]
        s += "xy"
        s += s["a"] + s["a"]
        s += "z" + gen("b", max_tokens=3)

    for seed in range(3):
        whole = run_graph(adjacent.trace(q="Hello"), backend=backend, seed=seed)
        broken = with_breaks.run("Hello", backend=backend, seed=seed)
        assert broken.text() == whole.text()


def test_inputs_that_are_missing_or_unknown_are_named(backend: ScriptedBackend) -> None:
    graph = adjacent.trace()
    with pytest.raises(InvalidArgument, match=r"missing q, unknown r; it takes q"):
        run_graph(graph, inputs={"r": 1}, backend=backend)


def test_a_graph_that_is_not_complete_is_refused_with_its_breaks(
    backend: ScriptedBackend,
) -> None:
    @function
    def decides(s: State) -> None:
        s += "q" + gen("a", max_tokens=2)
        if s["a"] == "x":
            s += "!"

    graph = decides.trace()
    assert not graph.is_complete
    with pytest.raises(InvalidArgument, match=r"test_run\.py:\d+"):
        run_graph(graph, backend=backend)


def test_a_failing_graph_raises_as_a_run_does(backend: ScriptedBackend) -> None:
    graph = adjacent.trace(q="x" * 5000)
    with pytest.raises(NodeError, match="4096"):
        run_graph(graph, backend=backend)


def test_a_graph_with_other_ids_is_refused(backend: ScriptedBackend) -> None:
    graph = adjacent.trace(q="x")
    with pytest.raises(InvalidArgument, match="ids count up"):
        run_graph(Graph("f", graph.nodes[1:]), backend=backend)
