"""Whatever fails, and whenever: no hang, no lost sibling, no list without its places."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait import Backend, Result, State, TimedOut, function, gen, retry, scripted
from plait.interpreter.backends.scripted import ScriptedBackend
from plait.interpreter.tasks import await_only

from .programs import replies

Step: TypeAlias = Literal["gen", "long", "fail", "nap"]


@dataclass(frozen=True)
class Tree:
    """A body: its steps, then one fork, and how that is waited for."""

    steps: tuple[Step, ...]
    branches: tuple[Tree, ...]
    on_error: Literal["raise", "skip", "collect"]
    times: int
    timeout: float | None
    ending: Literal["join", "values", "outcomes", "first", "cancel", "none"]


STEPS = st.lists(st.sampled_from(["gen", "gen", "long", "fail", "nap"]), max_size=3).map(tuple)


def trees(depth: int) -> st.SearchStrategy[Tree]:
    below = st.lists(trees(depth - 1), max_size=3).map(tuple) if depth else st.just(())
    return st.builds(
        Tree,
        STEPS,
        below,
        st.sampled_from(["raise", "skip", "collect"]),
        st.integers(0, 1),
        st.sampled_from([None, None, 0.002, 0.05]),
        st.sampled_from(["join", "values", "outcomes", "first", "cancel", "none"]),
    )


def grow(s: State, tree: Tree) -> int:
    for i, step in enumerate(tree.steps):
        match step:
            case "gen":
                s += "b: " + gen(f"g{i}", max_tokens=8, temperature=0)
                assert s[f"g{i}"] == "B"
            case "long":
                s += "x " + gen("unread", max_tokens=40, ignore_eos=True)
            case "nap":
                await_only(asyncio.sleep(0.004))
            case "fail":
                raise ValueError("mine")
    if tree.branches:
        spread(s, tree)
    return len(tree.steps)


def spread(s: State, tree: Tree) -> None:
    width = len(tree.branches)
    policy = retry(tree.times, tree.on_error)
    forks = s.map(grow, tree.branches, on_error=policy, timeout=tree.timeout)
    match tree.ending:
        case "join":
            assert all(len(values) == width for values in forks.join().values())
        case "values":
            assert len(forks.values) == width
        case "outcomes":
            assert [outcome.index for outcome in forks.outcomes] == list(range(width))
        case "first":
            assert len(forks.first(1)) <= 1
            assert len(forks.values) == width
        case "cancel":
            forks.cancel()
            forks.join()
        case "none":
            pass


@function
def program(s: State, tree: Tree) -> None:
    s += "one: "
    s.map(grow, [tree], on_error="raise").join()
    s += "two: " + gen("end", max_tokens=8, temperature=0)


@pytest.fixture(scope="module")
def shared() -> Iterator[Backend]:
    opened = scripted(replies, max_context=512)
    yield opened
    opened.close()


@settings(max_examples=60, deadline=None)
@given(tree=trees(2), is_batch=st.booleans())
def test_every_run_ends_and_keeps_its_places(tree: Tree, is_batch: bool, shared: Backend) -> None:
    results: list[Result] = []

    def run() -> None:
        rows = [(tree,)] * (3 if is_batch else 1)
        results.extend(program.run_batch(rows, backend=shared))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "a run hangs"
    for result in results:
        assert result.ok or isinstance(result.error, ValueError | TimedOut), result.error
        if result.ok:
            assert result["end"] == "second"
            assert result.outputs()
    assert results


def test_what_a_cancelled_branch_held_is_free_at_once() -> None:
    backend = scripted(lambda text: "abc" * 1000, max_context=4096)
    assert isinstance(backend, ScriptedBackend)

    @function
    def program(s: State) -> None:
        def body(branch: State, i: int) -> None:
            branch += f"{i}: " + gen("x", max_tokens=4000 if i else 1, ignore_eos=True)
            assert branch["x"]

        forks = s.fork(8, body)
        assert [outcome.index for outcome in forks.first(1)] == [0]
        deadline_s = time.monotonic() + 5
        while backend.stats().num_running + backend.stats().num_waiting:
            assert time.monotonic() < deadline_s
            await_only(asyncio.sleep(0.001))

    program.run_batch([{}], backend=backend)[0].check()
    backend.close()
